/** Headers of dead letters and replays. Those of Spring Kafka are written as it writes them, so that its programs read ours. */
import { fromIso } from '../../../time/iso.ts'
import { type Coordinates, type Header, HeaderList, headerText, type RecordHeaders, textOf } from '../record.ts'
import type { Envelope } from './envelope.ts'
import { withoutParts } from './parts.ts'

/** Spring's names. */
export const DLT_HEADERS = Object.freeze({
  topic: 'kafka_dlt-original-topic',
  partition: 'kafka_dlt-original-partition',
  offset: 'kafka_dlt-original-offset',
  timestamp: 'kafka_dlt-original-timestamp',
  group: 'kafka_dlt-original-consumer-group',
  exceptionClass: 'kafka_dlt-exception-fqcn',
  exceptionText: 'kafka_dlt-exception-message',
  stackTrace: 'kafka_dlt-exception-stacktrace',
})

/** Our own, on replayed records. */
export const REPLAY_HEADERS = Object.freeze({
  /** How often the record was replayed. It grows with every failure that follows, so a loop ends. */
  count: 'x-dlq-replay-count',
  firstFailureAt: 'x-dlq-first-failure-at',
  /** The one group that is to handle it; all others skip it. */
  group: 'x-dlq-target-group',
  /** Where the record first stood, `topic/partition/offset`: what a handler tells repetitions apart by. */
  origin: 'x-dlq-origin',
})

/** Our own, on letters: the id of the topic in which the record stood. */
const TOPIC_ID = 'x-dlq-topic-id'

const OURS: ReadonlySet<string> = new Set([...Object.values(REPLAY_HEADERS), TOPIC_ID])

/** Null in a letter of another program, or of one of ours that did not say so yet. */
export function topicIdOf(headers: RecordHeaders): string | null {
  return headerText(headers, TOPIC_ID)
}

/** The headers of a dead letter: the record's own, then Spring's. Integers are big-endian: int32, int64, int64. */
export function dltHeaders(
  envelope: Envelope,
  record: { readonly headers: RecordHeaders; readonly timestampMs: number },
  topicId: string | null,
): RecordHeaders {
  const { error_details: error } = envelope
  const own = [...withoutDlt(record.headers)].filter(([name]) => name !== TOPIC_ID)
  const written: readonly Header[] = [
    [DLT_HEADERS.topic, Buffer.from(envelope.original_topic)],
    [DLT_HEADERS.partition, int32(envelope.original_partition)],
    [DLT_HEADERS.offset, int64(BigInt(envelope.original_offset))],
    [DLT_HEADERS.timestamp, int64(BigInt(record.timestampMs))],
    [DLT_HEADERS.group, Buffer.from(envelope.consumer_group)],
    [DLT_HEADERS.exceptionClass, Buffer.from(error.exception_class)],
    [DLT_HEADERS.exceptionText, Buffer.from(error.message)],
    [DLT_HEADERS.stackTrace, Buffer.from(error.stack_trace)],
  ]
  const id: readonly Header[] = topicId === null ? [] : [[TOPIC_ID, Buffer.from(topicId)]]
  return new HeaderList([...own, ...written, ...id])
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}

function int64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigInt64BE(value)
  return bytes
}

/** What Spring's headers say; null for what is not there or no such thing. */
export interface DltFacts {
  readonly topic: string | null
  readonly partition: number | null
  readonly offset: bigint | null
  readonly timestampMs: number | null
  readonly group: string | null
  readonly exceptionClass: string | null
  readonly exceptionText: string | null
  readonly stackTrace: string | null
}

export function readDltHeaders(headers: RecordHeaders): DltFacts {
  const partition = integerOf(headers.get(DLT_HEADERS.partition))
  const timestamp = integerOf(headers.get(DLT_HEADERS.timestamp))
  return {
    topic: headerText(headers, DLT_HEADERS.topic),
    partition: partition === null ? null : Number(partition),
    offset: integerOf(headers.get(DLT_HEADERS.offset)),
    timestampMs: timestamp === null ? null : Number(timestamp),
    group: headerText(headers, DLT_HEADERS.group),
    exceptionClass: headerText(headers, DLT_HEADERS.exceptionClass),
    exceptionText: headerText(headers, DLT_HEADERS.exceptionText),
    stackTrace: headerText(headers, DLT_HEADERS.stackTrace),
  }
}

/** Some programs write digits. Read as an integer, four or eight digits would be beyond every real partition and offset. */
function integerOf(bytes: Buffer | undefined): bigint | null {
  if (bytes === undefined) return null
  const digits = textOf(bytes)
  if (digits !== null && /^\d{1,19}$/.test(digits)) return BigInt(digits)
  if (bytes.length === 4) return atLeastZero(BigInt(bytes.readInt32BE()))
  return bytes.length === 8 ? atLeastZero(bytes.readBigInt64BE()) : null
}

function atLeastZero(value: bigint): bigint | null {
  return value >= 0n ? value : null
}

/** A record's own headers, without those of an earlier death. */
export function withoutDlt(headers: RecordHeaders): RecordHeaders {
  return new HeaderList([...withoutParts(headers)].filter(([name]) => !name.startsWith('kafka_dlt-')))
}

/** Where a record first stood, unless another program has written nonsense there. */
export function originOf(text: string | null): string | null {
  return text !== null && /^[^/]+\/\d+\/\d+$/.test(text) ? text : null
}

/** What a replay adds. What the record had of an earlier replay is replaced, except where it first stood. */
export function replayHeaders(
  headers: RecordHeaders,
  replay: {
    readonly origin: Coordinates
    readonly group: string
    readonly count: number
    readonly firstFailureAt: string
  },
): RecordHeaders {
  const { topic, partition, offset } = replay.origin
  const origin = originOf(headerText(headers, REPLAY_HEADERS.origin)) ?? `${topic}/${partition}/${offset}`
  const own = [...withoutDlt(headers)].filter(([name]) => !OURS.has(name))
  const written: readonly Header[] = [
    [REPLAY_HEADERS.count, Buffer.from(String(replay.count))],
    [REPLAY_HEADERS.firstFailureAt, Buffer.from(replay.firstFailureAt)],
    [REPLAY_HEADERS.origin, Buffer.from(origin)],
  ]
  // Without a group, as in a letter of another program, every group handles it, as every group did before.
  return new HeaderList([
    ...own,
    ...written,
    ...(replay.group === '' ? [] : [[REPLAY_HEADERS.group, Buffer.from(replay.group)] as const]),
  ])
}

/** What a record that is handled says about its replays. Nonsense is as if nothing were there. */
export interface ReplayFacts {
  readonly count: number
  readonly firstFailureMs: number | null
  readonly group: string | null
  readonly origin: string | null
}

export function readReplayHeaders(headers: RecordHeaders): ReplayFacts {
  const count = headerText(headers, REPLAY_HEADERS.count) ?? ''
  const firstFailureMs = fromIso(headerText(headers, REPLAY_HEADERS.firstFailureAt) ?? '')
  return {
    count: /^\d{1,6}$/.test(count) ? Number(count) : 0,
    firstFailureMs: Number.isNaN(firstFailureMs) ? null : firstFailureMs,
    group: headerText(headers, REPLAY_HEADERS.group),
    origin: originOf(headerText(headers, REPLAY_HEADERS.origin)),
  }
}

/**
 * Whether a group passes over a record because it was replayed for another one. Workers of ours do by themselves; a
 * program that reads the topic with another client has to ask.
 *
 * @example
 * if (isForAnotherGroup(headers, 'refund-executor')) return
 */
export function isForAnotherGroup(headers: RecordHeaders, group: string): boolean {
  const target = headerText(headers, REPLAY_HEADERS.group)
  return target !== null && target !== group
}
