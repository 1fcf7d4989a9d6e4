import type { PayloadEdit } from '../../../engine/dead-letters.ts'
import { EngineError } from '../../../errors.ts'
import { HEADERS } from '../record.ts'
import type { TopicLetter } from './letter.ts'
import type { DeadLetterLog } from './log.ts'
import type { NewRecord } from './record.ts'

/** The record to write for a replay, with another payload if one is given; null when nobody knows where it came from. */
export function editedReplay(letter: TopicLetter, edit?: PayloadEdit): NewRecord | null {
  const record = letter.replayed()
  if (record === null || edit === undefined) return record
  const version = Buffer.from(String(edit.payloadVersion))
  return {
    ...record,
    value: Buffer.from(edit.payload),
    headers: new Map([...record.headers, [HEADERS.payloadVersion, version]]),
  }
}

/** Asked before anybody claims a letter: a replay that cannot be written would leave it claimed. */
export async function throwIfGone(log: DeadLetterLog, records: readonly NewRecord[]): Promise<void> {
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
