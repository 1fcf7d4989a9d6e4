import type { Clock } from '../time/clock.ts'
import { ANSWER_MS, answerWithin } from './deadline.ts'
import { errorText } from './error-text.ts'

/** What was found, or why it could not be found. */
export type Found<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: string }

/** What `ask` answers within a second. It never rejects: not to know is an answer too. */
export async function findWithin<T>(clock: Clock, what: string, ask: () => Promise<T>): Promise<Found<T>> {
  try {
    return { ok: true, value: await answerWithin(clock, ANSWER_MS, what, ask) }
  } catch (error) {
    return { ok: false, error: errorText(error) }
  }
}
