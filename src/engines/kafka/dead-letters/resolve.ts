import { randomUUID } from 'node:crypto'
import type { Actor, PayloadEdit } from '../../../engine/dead-letters.ts'
import { EngineError } from '../../../errors.ts'
import type { Clock } from '../../../time/clock.ts'
import { HEADERS } from '../job-record.ts'
import { HeaderList, type NewRecord } from '../record.ts'
import { entryOf, type LetterAct } from './audit.ts'
import type { TopicLetter } from './letter.ts'
import type { LetterLog } from './letter-log.ts'
import {
  claimRecord,
  type LetterState,
  type Resolution,
  releaseRecord,
  resolvedRecord,
  type StateRecord,
} from './states.ts'

export interface Resolving {
  /** In which of these a letter must be. */
  readonly from: readonly LetterState[]
  readonly to: Resolution
  readonly action: LetterAct['action']
  readonly by: Actor
  /** Replaces the stored payload. */
  readonly edit?: PayloadEdit
  /** Runs after the letters are claimed and before they count as resolved. */
  perform(held: readonly TopicLetter[]): Promise<void>
}

/**
 * Claims letters, acts on them and stores their new state; returns those that this call resolved. Of two callers that act
 * on one letter, the first in the log has it. If acting fails, how far it came is unknown, so the claims stay: the letter is
 * not lost, and not acted on again until an operator releases it.
 */
export async function resolveLetters(
  { log, clock, prefix }: { readonly log: LetterLog; readonly clock: Clock; readonly prefix: string },
  letters: readonly TopicLetter[],
  { from, to, action, by, edit, perform }: Resolving,
): Promise<ReadonlySet<TopicLetter>> {
  const before = await log.states()
  const isFree = ({ id }: TopicLetter): boolean => from.includes(before.of(id).state) && before.of(id).claim === null
  const free = letters.filter(isFree)
  if (free.length === 0) return new Set()
  const states = new Map(free.map((letter) => [letter, before.of(letter.id)]))
  const claim = randomUUID()
  await log.write(free.map(({ id }) => claimRecord({ letter: id, claim, atMs: clock.nowMs(), by })))
  const book = await log.states()
  const held = free.filter(({ id }) => book.isHeld(id, claim, from))
  const late = free.filter((letter) => !held.includes(letter))
  if (late.length > 0) await log.write(late.map(({ id }) => releaseRecord(id, claim)))
  if (held.length === 0) return new Set()
  await perform(held)
  const atMs = clock.nowMs()
  await log.write(
    held.flatMap(({ id, at }): StateRecord[] => [
      resolvedRecord({ letter: id, state: to, at: { ...at, offset: String(at.offset) }, atMs, by }),
      releaseRecord(id, claim),
    ]),
    held.map((letter) => {
      const act = { action, by, atMs, prefix, ...(edit && { edit }) }
      return entryOf(letter, states.get(letter) ?? book.of(letter.id), act)
    }),
  )
  return new Set(held)
}

/** The record to write for a replay; null for a letter that cannot be replayed. */
export function editedReplay(letter: TopicLetter, edit?: PayloadEdit): NewRecord | null {
  const record = letter.replayed()
  if (record === null || edit === undefined) return record
  const version = Buffer.from(String(edit.payloadVersion))
  const others = [...record.headers].filter(([name]) => name !== HEADERS.payloadVersion)
  return {
    ...record,
    value: Buffer.from(edit.payload),
    headers: new HeaderList([...others, [HEADERS.payloadVersion, version]]),
  }
}

/** Checked before a letter is claimed: a replay that cannot be written would leave it claimed. */
export async function throwIfTopicMissing(log: LetterLog, records: readonly NewRecord[]): Promise<void> {
  const found = await log.partitions(records.map(({ topic }) => topic))
  for (const { topic, partition } of records) {
    const partitions = found.get(topic) ?? []
    if (partitions.some((one) => partition === undefined || one.partition === partition)) continue
    throw new EngineError(
      'ERR_SCHEMA_MISSING',
      `the letter goes back to partition ${partition} of '${topic}', which does not exist; create it, or discard the letter`,
    )
  }
}
