import type { TopicAnswer, TopicLetters, TopicLetterView } from '../../engine/topics.ts'
import { MillraceError, UnsupportedError } from '../../errors.ts'
import { omitUndefined } from '../../job/known-options.ts'
import { toIso } from '../../time/iso.ts'
import type { AdminContext } from '../context.ts'
import type { DLQ_ROUTES } from '../contract/dlq.ts'
import type { Handlers } from '../routing.ts'

export function dlqHandlers(admin: AdminContext): Handlers<keyof typeof DLQ_ROUTES> {
  const shown = (letter: TopicLetterView): Record<string, unknown> => {
    const { topic, partition, offset } = letter.at
    return {
      id: letter.id,
      ...{ dlq_topic: topic, dlq_partition: partition, dlq_offset: Number(offset) },
      dead_at: toIso(letter.deadAtMs),
      ...withoutSecrets(admin, letter.envelope),
    }
  }
  const answered = (answer: TopicAnswer) => {
    if (answer.done) return { done: true, letter: shown(answer.letter) }
    const code = answer.why === 'not-found' ? 'ERR_JOB_UNKNOWN' : 'ERR_DESK_REFUSED'
    throw new MillraceError(code, answer.text)
  }
  return {
    async listDlq({ params: { topic }, query }) {
      const letters = await deskOf(admin).list(topic, query)
      return { letters: letters.map(({ letter, state }) => ({ ...shown(letter), state: state.state })) }
    },
    async replayDlq({ body }, { caller }) {
      const { topic, partition, offset, reason, force, dryRun } = omitUndefined(body)
      const by = { who: caller.who, reason: reason ?? 'replay' }
      const address = omitUndefined({ topic, partition, offset: BigInt(offset) })
      const answer = answered(await deskOf(admin).replay(address, { by, force, dryRun }))
      return { ...answer, done: !dryRun }
    },
    async replayAllDlq({ query }, { caller, signal }) {
      const { topic, reason, ...options } = omitUndefined(query)
      const by = { who: caller.who, reason: reason ?? 'replay' }
      const { refused, ...progress } = await deskOf(admin).replayAll(topic, { ...options, by, signal })
      const counted = Object.entries(refused).map(([why, count]): [string, number] => [why, count ?? 0])
      return { ...progress, refused: Object.fromEntries(counted) }
    },
    async discardDlq({ params: { topic, offset }, query: { partition, reason } }, { caller }) {
      const by = { who: caller.who, reason: reason ?? 'discard' }
      return answered(await deskOf(admin).discard(omitUndefined({ topic, partition, offset: BigInt(offset) }), { by }))
    },
  }
}

function deskOf({ topics, mill }: AdminContext): TopicLetters {
  if (topics !== null) return topics.desk
  throw new UnsupportedError({ engine: mill.engine.name, limit: 'has no topics' })
}

/** The value as it was written says once more what was taken out of the parsed one. */
function withoutSecrets({ redaction }: AdminContext, envelope: object): Record<string, unknown> {
  const { original_text: text, ...facts }: Record<string, unknown> = { ...envelope }
  const value = redaction.named(facts.original_value)
  const isWhole = JSON.stringify(value) === JSON.stringify(facts.original_value)
  return { ...facts, original_value: value, ...(isWhole && text !== undefined && { original_text: text }) }
}
