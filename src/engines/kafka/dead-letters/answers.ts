/** What the desk answers. A refusal is a value: nothing was changed, and the text says what to do instead. */
import type { TopicLetter } from './letter.ts'
import type { StateBook } from './states.ts'

export type DlqRefusal = 'not-found' | 'ambiguous' | 'not-pending' | 'replayed-too-often' | 'unknown-origin'

export type DlqAnswer =
  | { readonly done: true; readonly letter: TopicLetter }
  | { readonly done: false; readonly why: DlqRefusal; readonly text: string }

export function done(letter: TopicLetter): DlqAnswer {
  return { done: true, letter }
}

export function refusal(why: DlqRefusal, text: string): DlqAnswer {
  return { done: false, why, text }
}

export function notPending({ id }: TopicLetter, book: StateBook): DlqAnswer {
  const { state, by, claim } = book.of(id)
  const who = by?.who ?? 'somebody'
  if (state === 'pending')
    return refusal('not-pending', `somebody tried to act on letter ${id} at the same time; look again`)
  const text = state === 'claimed' ? `${who} acts on letter ${id} now` : `letter ${id} was ${state} by ${who}`
  return refusal('not-pending', claim === null ? text : `${text}; if nobody does any more, release it`)
}

/**
 * For the dead-letter endpoints in a server of your own: which HTTP status an answer is.
 *
 * @example
 * const answer = await dlq.desk.replay({ topic: 'escrow.commands', offset: 7 }, { by })
 * response.status(dlqHttpStatus(answer))
 */
export function dlqHttpStatus(answer: DlqAnswer): 200 | 404 | 409 {
  if (answer.done) return 200
  return answer.why === 'not-found' ? 404 : 409
}
