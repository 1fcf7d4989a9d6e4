/** How long dead letters stay in their topic: by age, state and whether money is at stake. */
import { encodeEnvelope } from '../../../src/engines/kafka/dead-letters/envelope-codec.ts'
import type { TopicLetter } from '../../../src/engines/kafka/dead-letters/letter.ts'
import type { StateView } from '../../../src/engines/kafka/dead-letters/states.ts'
import type { TopicLetters } from '../../../src/engines/kafka/dead-letters/topic-letters.ts'
import { LETTER_AGE_MAX_MS } from '../../../src/engines/kafka/topics.ts'
import type { Clock } from '../../../src/time/clock.ts'
import { toIso } from '../../../src/time/iso.ts'

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

/** Where a letter stands. */
type PlacedLetter = Pick<TopicLetter, 'at' | 'begin'>

export interface JudgedLetter<Letter extends PlacedLetter = PlacedLetter> {
  readonly letter: Letter
  readonly fate: 'keep' | 'archive'
}

export interface ArchivePlan<Letter extends PlacedLetter = PlacedLetter> {
  readonly archive: readonly Letter[]
  /** The offset below which each partition is deleted once its letters are archived. */
  readonly cuts: ReadonlyMap<number, bigint>
}

/**
 * A partition can only be deleted from its old end, so a letter that is kept keeps all younger ones: a letter that could
 * not be deleted would be archived again each time. Letters are given in the order of their offsets.
 */
export function archivePlan<Letter extends PlacedLetter>(
  letters: readonly JudgedLetter<Letter>[],
): ArchivePlan<Letter> {
  const archive: Letter[] = []
  const cuts = new Map<number, bigint>()
  /** By partition, the first offset that is kept: parts of a letter may stand before other letters. */
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
  /** Stores lines of JSON. When it resolves, the letters are deleted from their topic. */
  readonly write: (lines: readonly string[]) => Promise<void>
  readonly clock: Clock
}

/** Letters that are in memory at once: a topic may have many more. */
const WRITTEN_MAX = 500

/**
 * Archives letters that are old enough and deletes them. A crash in between archives them again, under the same ids. Of the
 * whole topic it keeps only where its letters stand, and reads those to archive a second time.
 */
export async function archiveLetters(letters: TopicLetters, topic: string, options: ArchiveOptions): Promise<number> {
  const { isFinancial, write, clock } = options
  const nowMs = clock.nowMs()
  const judged: JudgedLetter[] = []
  for await (const { letter, state } of letters.walk(topic)) {
    const { at, begin, deadAtMs } = letter
    judged.push({ letter: { at, begin }, fate: letterFate({ deadAtMs, state, isFinancial }, nowMs) })
  }
  const { archive, cuts } = archivePlan(judged)
  if (archive.length === 0) return 0
  let lines: string[] = []
  for await (const { letter } of letters.walk(topic)) {
    if (letter.at.offset >= (cuts.get(letter.at.partition) ?? 0n)) continue
    lines.push(archiveLine(letter, nowMs))
    if (lines.length < WRITTEN_MAX) continue
    await write(lines)
    lines = []
  }
  if (lines.length > 0) await write(lines)
  for (const [partition, offset] of cuts) await letters.deleteBefore(topic, partition, offset)
  return archive.length
}

/** The whole letter as one line of JSON. */
function archiveLine(letter: TopicLetter, archivedAtMs: number): string {
  const { topic, partition, offset } = letter.at
  const place = JSON.stringify({
    archived_at: toIso(archivedAtMs),
    id: letter.id,
    dlq_topic: topic,
    dlq_partition: partition,
    dlq_offset: Number(offset),
  })
  return `${place.slice(0, -1)},${encodeEnvelope(letter.envelope).slice(1)}`
}
