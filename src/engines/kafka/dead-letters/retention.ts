/** How long dead letters stay. Pure: what to do now follows from ages, states and whether money is at stake. */

import { type Clock, systemClock } from '../../../time/clock.ts'
import { toDlqTopic } from '../record.ts'
import { archiveLine, type TopicLetter } from './letter.ts'
import type { LetterLog } from './letter-log.ts'
import type { StateView } from './states.ts'
import { walkLetters } from './walk.ts'

/** Ordinary letters are archived when they are older. */
export const LETTER_AGE_MAX_MS = 30 * 86_400_000

export interface KeptLetter {
  readonly deadAtMs: number
  readonly state: StateView
  readonly isFinancial: boolean
}

/**
 * An ordinary letter is archived 30 days after its death, resolved or not. A financial one stays until an operator has
 * replayed or discarded it, however long that takes, and 30 days more.
 */
export function letterFate({ deadAtMs, state, isFinancial }: KeptLetter, nowMs: number): 'keep' | 'archive' {
  if (!isFinancial) return nowMs - deadAtMs > LETTER_AGE_MAX_MS ? 'archive' : 'keep'
  const isResolved = state.state === 'replayed' || state.state === 'discarded'
  const sinceMs = Math.max(deadAtMs, state.sinceMs ?? 0)
  return isResolved && nowMs - sinceMs > LETTER_AGE_MAX_MS ? 'archive' : 'keep'
}

/**
 * A DLQ topic never forgets by itself: the broker would delete what nobody has archived. What is archived is cut off
 * by us.
 */
export const DLQ_TOPIC_CONFIG: Readonly<Record<string, string>> = Object.freeze({
  'cleanup.policy': 'delete',
  'retention.ms': '-1',
  'retention.bytes': '-1',
})

/** What a letter takes beside the value of its record: the envelope, and the error once more in the headers. */
const AROUND_BYTES = 64 * 1_024
/** The largest that a topic can be set to take. */
const TOPIC_BYTES_MAX = 2 ** 31 - 1

/** How large the letter of a record may be whose topic takes so many bytes: what is no JSON grows by a third. */
export function letterBytesMax(recordBytes: number): number {
  return Math.min(TOPIC_BYTES_MAX, Math.ceil((recordBytes * 4) / 3) + AROUND_BYTES)
}

/** The states' topic: one partition, the last record of each key for ever. An entry of the audit may hold two payloads. */
export const STATES_TOPIC_CONFIG: Readonly<Record<string, string>> = Object.freeze({
  'cleanup.policy': 'compact',
  'retention.ms': '-1',
  'max.message.bytes': String(10 * 1_024 * 1_024),
})

/** Lines of the archive are a little longer than the letters that they tell of. */
export const ARCHIVE_TOPIC_CONFIG: Readonly<Record<string, string>> = Object.freeze({
  ...DLQ_TOPIC_CONFIG,
  'max.message.bytes': String(10 * 1_024 * 1_024),
})

export interface JudgedLetter {
  readonly letter: TopicLetter
  readonly fate: 'keep' | 'archive'
}

export interface ArchivePlan {
  readonly archive: readonly TopicLetter[]
  /** Up to where each partition is cut once they are archived. */
  readonly cuts: ReadonlyMap<number, bigint>
}

/**
 * A partition can only be cut at its old end, so a letter that is kept keeps all that are younger: what could not be
 * cut would be archived again every time. Letters are given in the order of their offsets.
 */
export function archivePlan(letters: readonly JudgedLetter[]): ArchivePlan {
  const archive: TopicLetter[] = []
  const cuts = new Map<number, bigint>()
  /** By partition, where what is kept begins: parts of a letter may stand before others. */
  const kept = new Map<number, bigint>()
  for (const { letter, fate } of letters) {
    const { partition } = letter.at
    const begin = kept.get(partition)
    if (fate === 'keep' && (begin === undefined || letter.begin < begin)) kept.set(partition, letter.begin)
  }
  for (const { letter } of letters) {
    const { partition, offset } = letter.at
    if (offset >= (kept.get(partition) ?? offset + 1n)) continue
    archive.push(letter)
    cuts.set(partition, offset + 1n)
  }
  return { archive, cuts }
}

export interface ArchiveOptions {
  readonly isFinancial: boolean
  /** Gets lines of JSON and must have stored them when it resolves: they are nowhere else afterwards. */
  readonly archive: (lines: readonly string[]) => Promise<void>
  readonly clock?: Clock
}

/** Archives what is old enough and cuts it off. A crash in between archives it again, under the same ids. */
export async function archiveLetters(log: LetterLog, topic: string, options: ArchiveOptions): Promise<number> {
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
