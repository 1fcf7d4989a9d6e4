import { type Clock, systemClock } from '../../../time/clock.ts'
import { archiveLine, type TopicLetter } from './letter.ts'
import type { DeadLetterLog } from './log.ts'
import { toDlqTopic } from './record.ts'
import { archivePlan, letterFate } from './retention.ts'
import { walkLetters } from './walk.ts'

export interface ArchiveOptions {
  readonly isFinancial: boolean
  /** Gets lines of JSON and must have stored them when it resolves: they are nowhere else afterwards. */
  readonly archive: (lines: readonly string[]) => Promise<void>
  readonly clock?: Clock
}

/** Archives what is old enough and cuts it off. A crash in between archives it again, under the same ids. */
export async function archiveLetters(log: DeadLetterLog, topic: string, options: ArchiveOptions): Promise<number> {
  const { isFinancial, archive, clock = systemClock } = options
  const dlqTopic = toDlqTopic(topic)
  const nowMs = clock.nowMs()
  const book = await log.states()
  const letters: TopicLetter[] = []
  for await (const page of walkLetters(log, dlqTopic)) letters.push(...page)
  const plan = archivePlan(
    letters.map((letter) => ({
      letter,
      fate: letterFate({ deadAtMs: letter.deadAtMs, state: book.of(letter.id), isFinancial }, nowMs),
    })),
  )
  if (plan.archive.length === 0) return 0
  await archive(plan.archive.map((letter) => archiveLine(letter, nowMs)))
  for (const [partition, offset] of plan.cuts) await log.deleteBefore(dlqTopic, partition, offset)
  return plan.archive.length
}
