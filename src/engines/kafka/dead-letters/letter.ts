import type { ErrorRecord, JobView } from '../../../job/job.ts'
import { tagsOf } from '../../../job/tags.ts'
import { fromIso, toIso } from '../../../time/iso.ts'
import { jobIdOf as idOf, toJob } from '../job-record.ts'
import { type Coordinates, DLQ_SUFFIX, dlqTopicOf, type LogRecord, letterId, type NewRecord } from '../record.ts'
import { buildEnvelope, type Envelope, type Failure, originalKey, originalValue } from './envelope.ts'
import { encodeEnvelope, readEnvelope } from './envelope-codec.ts'
import { dltHeaders, readDltHeaders, readReplayHeaders, replayHeaders, topicIdOf, withoutDlt } from './headers.ts'
import type { StateView } from './states.ts'

/** A dead letter as it stands in its topic. */
export interface TopicLetter {
  /** The same for every copy of one failure. States are kept under it. */
  readonly id: string
  /** Where the letter stands, not what failed. */
  readonly at: Coordinates
  /** The first offset of it: before `at` where it was written in parts. */
  readonly begin: bigint
  /** Why it cannot be replayed; null where it can. */
  readonly unreplayable: string | null
  readonly deadAtMs: number
  readonly envelope: Envelope
  /** The record that failed, as it was; the letter itself where its origin is unknown. */
  failed(): LogRecord
  /** The record to write for a replay; null for a letter that is `unreplayable`. */
  replayed(): NewRecord | null
}

type DeadRecord = Omit<Failure, 'record' | 'replays' | 'firstFailureMs'> & {
  readonly record: LogRecord
  /** Of the topic in which it stands; null where that is not known. */
  readonly topicId?: string | null
  /** When this life of the record failed first. A replayed record has failed before, and says when. */
  readonly firstFailureMs: number
}

/** The record to write when a record has failed for the last time: acknowledged by all, before its offset is settled. */
export function toDeadLetter(dead: DeadRecord): NewRecord {
  const { topicId = null } = dead
  const replay = readReplayHeaders(dead.record.headers)
  const envelope = buildEnvelope({
    ...dead,
    replays: replay.count,
    firstFailureMs: Math.min(replay.firstFailureMs ?? dead.firstFailureMs, dead.firstFailureMs),
  })
  return {
    topic: dlqTopicOf(dead.record.topic),
    key: Buffer.from(letterId(dead.record, dead.group, null)),
    value: Buffer.from(encodeEnvelope(envelope)),
    headers: dltHeaders(envelope, dead.record, topicId),
  }
}

/**
 * Reads what stands in a DLQ topic: our letters, letters of other programs in the same format, and Spring's own, which
 * are the record itself with headers. Whatever it is, it is listed: an operator must see what is there.
 */
export function readLetter(record: LogRecord): TopicLetter {
  const { topic, partition, offset } = record
  const found = readEnvelope(record.value)
  const envelope = found ?? fromSpring(record)
  const origin = {
    topic: envelope.original_topic,
    partition: envelope.original_partition,
    offset: originOffset(record, envelope),
  }
  const isKnown = envelope.original_topic !== ''
  const id = isKnown ? letterId(origin, envelope.consumer_group, topicIdOf(record.headers)) : letterId(record, '', null)
  const unreplayable = record.parts?.isTorn
    ? `parts of letter ${id} are deleted from its topic; discard it`
    : `letter ${id} does not say where it came from; discard it, or write it back by hand`
  const canReplay = isKnown && record.parts?.isTorn !== true
  return {
    id,
    at: { topic, partition, offset },
    begin: record.parts?.begin ?? offset,
    unreplayable: canReplay ? null : unreplayable,
    deadAtMs: record.timestampMs,
    envelope,
    failed: () => ({
      ...(isKnown ? origin : { topic, partition, offset }),
      key: originalKey(envelope),
      value: originalValue(envelope),
      headers: withoutDlt(record.headers),
      timestampMs: readDltHeaders(record.headers).timestampMs ?? record.timestampMs,
    }),
    replayed: () => (canReplay ? replayOf(record, envelope, origin) : null),
  }
}

function replayOf(record: LogRecord, envelope: Envelope, origin: Coordinates): NewRecord {
  return {
    topic: origin.topic,
    // Where its key has always been, so that order by key holds from here on.
    partition: origin.partition,
    key: originalKey(envelope),
    value: originalValue(envelope),
    headers: replayHeaders(record.headers, {
      origin,
      group: envelope.consumer_group,
      count: envelope.replay_count + 1,
      firstFailureAt: envelope.first_failure_at,
    }),
  }
}

/** Spring's letter is the record as it was. Without its headers the origin is unknown; it is shown all the same. */
function fromSpring(record: LogRecord): Envelope {
  const facts = readDltHeaders(record.headers)
  const replay = readReplayHeaders(record.headers)
  const isKnown = facts.topic !== null && facts.partition !== null && facts.offset !== null
  return buildEnvelope({
    record: {
      topic: isKnown ? (facts.topic ?? '') : '',
      partition: facts.partition ?? record.partition,
      offset: facts.offset ?? record.offset,
      key: record.key,
      value: record.value,
    },
    error: {
      name: facts.exceptionClass ?? '',
      code: null,
      message: facts.exceptionText ?? '',
      stack: facts.stackTrace,
    },
    starts: 1,
    group: facts.group ?? '',
    workerType: '',
    workerInstance: '',
    firstFailureMs: replay.firstFailureMs ?? record.timestampMs,
    lastFailureMs: record.timestampMs,
    replays: replay.count,
  })
}

/** The header has it as it is; in the envelope it went through a double. */
function originOffset(record: LogRecord, envelope: Envelope): bigint {
  return readDltHeaders(record.headers).offset ?? BigInt(envelope.original_offset)
}

/** One line of an archive: everything that the letter said, as JSON. */
export function archiveLine(letter: TopicLetter, archivedAtMs: number): string {
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

/** When it failed for the last time, by the clock of its worker. */
export function diedAtMs({ envelope, deadAtMs }: TopicLetter): number {
  const ms = fromIso(envelope.last_failure_at)
  return Number.isNaN(ms) ? deadAtMs : ms
}

/** The topic whose job it was, also where the letter does not say so. */
export function topicOf({ envelope, at }: TopicLetter): string {
  return envelope.original_topic === '' ? at.topic.slice(0, -DLQ_SUFFIX.length) : envelope.original_topic
}

export function jobIdOf(letter: TopicLetter): string {
  return idOf(letter.failed())
}

export function errorOf({ envelope }: TopicLetter): ErrorRecord {
  const { exception_class: name, message, stack_trace: stack } = envelope.error_details
  return { name, code: envelope.error_code ?? null, message, stack: stack === '' ? null : stack }
}

/** The job that a letter is about, as every engine shows one. */
export function viewOf(letter: TopicLetter, state: StateView, prefix: string): JobView {
  const record = letter.failed()
  const attempt = letter.envelope.retry_count + 1
  const { job } = toJob(record, prefix, attempt)
  const diedMs = diedAtMs(letter)
  return {
    ...job,
    type: topicOf(letter).slice(prefix.length),
    state: state.state === 'discarded' ? 'discarded' : 'dead_letter',
    attempt,
    tags: tagsOf(job.options),
    replays: letter.envelope.replay_count,
    progress: null,
    result: null,
    error: errorOf(letter),
    leaseOwner: null,
    leaseUntilMs: null,
    updatedAtMs: state.sinceMs ?? diedMs,
    startedAtMs: null,
    completedAtMs: diedMs,
    durationMs: null,
  }
}
