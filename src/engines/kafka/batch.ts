import type { RecordsBatch } from '@platformatic/kafka'
import type { LogRecord } from './dead-letters/record.ts'
import type { PartitionName } from './holding.ts'

const CONTROL = 32

/** The records of a batch: none for the mark of a transaction. */
export function recordsIn(batch: RecordsBatch): RecordsBatch['records'] {
  return (batch.attributes & CONTROL) === 0 ? batch.records : []
}

/** The offset behind a batch, also where its last records were compacted away. */
export function endOf(batch: RecordsBatch): bigint {
  return batch.firstOffset + BigInt(batch.lastOffsetDelta) + 1n
}

/** A record as we know it, in memory of its own. */
export function toLogRecord(
  { topic, partition }: PartitionName,
  batch: RecordsBatch,
  { offsetDelta, timestampDelta, key, value, headers }: RecordsBatch['records'][number],
): LogRecord {
  const copy = copier(lengthOf(key) + lengthOf(value) + headers.reduce((sum, [, text]) => sum + lengthOf(text), 0))
  return {
    topic,
    partition,
    offset: batch.firstOffset + BigInt(offsetDelta),
    timestampMs: Number(batch.firstTimestamp + timestampDelta),
    key: copy(key),
    value: copy(value),
    headers: new Map(headers.map(([name, text]) => [String(name ?? ''), copy(text) ?? Buffer.alloc(0)])),
  }
}

function lengthOf(bytes: Buffer | null | undefined): number {
  return bytes?.length ?? 0
}

/**
 * Copies the parts of one record into one piece of memory. A record that waits would otherwise keep the whole chunk of
 * the socket that it came in, and a piece for every part is more than the collector of garbage keeps up with.
 */
function copier(bytesMax: number): (bytes: Buffer | null | undefined) => Buffer | null {
  const own = Buffer.allocUnsafe(bytesMax)
  let used = 0
  return (bytes) => {
    if (bytes === null || bytes === undefined) return null
    const from = used
    used += bytes.copy(own, from)
    return own.subarray(from, used)
  }
}
