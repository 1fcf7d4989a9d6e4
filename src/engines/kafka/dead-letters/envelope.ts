/** The value of a dead letter: the fields of the escrow workers, in their order, and what a replay needs besides. */
import type { ErrorRecord } from '../../../job/job.ts'
import { toIso } from '../../../time/iso.ts'
import { type Coordinates, textOf } from '../record.ts'

export const STACK_TRACE_LENGTH_MAX = 500

export interface Envelope {
  readonly original_topic: string
  readonly original_partition: number
  readonly original_offset: number
  readonly original_key: string | null
  /** What the record's JSON says; base64 where `original_encoding` says so; null for a tombstone. */
  readonly original_value: unknown
  readonly error_details: {
    readonly exception_class: string
    readonly message: string
    readonly stack_trace: string
  }
  /** Starts after the first. */
  readonly retry_count: number
  readonly worker_instance: string
  readonly first_failure_at: string
  readonly last_failure_at: string
  /** Whose failure it is: other groups of the topic may have handled the record well. */
  readonly consumer_group: string
  readonly worker_type: string
  /** How often it had been replayed when it failed this time. */
  readonly replay_count: number
  /** Present where the value is no JSON. */
  readonly original_encoding?: 'base64'
  readonly original_key_encoding?: 'base64'
  /** Present where the error had one. */
  readonly error_code?: string
  /**
   * The value as it was written, where JSON written anew would differ: 100.50, spaces, integers beyond 2^53. In the letter
   * itself the value stands so, once: see envelope-codec.ts.
   */
  readonly original_text?: string
}

export interface Failure {
  readonly record: Coordinates & { readonly key: Buffer | null; readonly value: Buffer | null }
  readonly error: ErrorRecord
  /** Starts in total, the first included. */
  readonly starts: number
  readonly group: string
  readonly workerType: string
  readonly workerInstance: string
  readonly firstFailureMs: number
  readonly lastFailureMs: number
  readonly replays: number
}

export function buildEnvelope(failure: Failure): Envelope {
  const { record, error } = failure
  const { original_value, ...valueNotes } = writtenValue(record.value)
  const { original_key, ...keyNotes } = writtenKey(record.key)
  return {
    original_topic: record.topic,
    original_partition: record.partition,
    // A partition would need 280 years at a million records a second to leave what a double counts.
    original_offset: Number(record.offset),
    original_key,
    original_value,
    error_details: {
      exception_class: error.name,
      message: error.message,
      stack_trace: (error.stack ?? '').slice(0, STACK_TRACE_LENGTH_MAX),
    },
    retry_count: Math.max(0, failure.starts - 1),
    worker_instance: failure.workerInstance,
    first_failure_at: toIso(failure.firstFailureMs),
    // Another machine's clock may have been ahead when it failed first.
    last_failure_at: toIso(Math.max(failure.firstFailureMs, failure.lastFailureMs)),
    consumer_group: failure.group,
    worker_type: failure.workerType,
    replay_count: failure.replays,
    ...(error.code !== null && { error_code: error.code }),
    ...valueNotes,
    ...keyNotes,
  }
}

type WrittenValue = Pick<Envelope, 'original_value' | 'original_encoding' | 'original_text'>
type WrittenKey = Pick<Envelope, 'original_key' | 'original_key_encoding'>

function writtenValue(value: Buffer | null): WrittenValue {
  if (value === null) return { original_value: null }
  const text = textOf(value)
  const parsed = text === null ? null : parseJson(text)
  if (text === null || parsed === null) {
    return { original_value: value.toString('base64'), original_encoding: 'base64' }
  }
  // `null` as text is no tombstone, so it says so too.
  const isExact = parsed.value !== null && JSON.stringify(parsed.value) === text
  return { original_value: parsed.value, ...(!isExact && { original_text: text }) }
}

function writtenKey(key: Buffer | null): WrittenKey {
  if (key === null) return { original_key: null }
  const text = textOf(key)
  return text === null
    ? { original_key: key.toString('base64'), original_key_encoding: 'base64' }
    : { original_key: text }
}

/** Deeper than this, JSON that could be read might not be written again: the stack would be too short. */
const DEPTH_MAX = 500

/** Null for what is no JSON, or is too deep. */
function parseJson(text: string): { readonly value: unknown } | null {
  if (depthOf(text) > DEPTH_MAX) return null
  try {
    return { value: JSON.parse(text) }
  } catch {
    return null
  }
}

function depthOf(text: string): number {
  let [depth, deepest, isText] = [0, 0, false]
  for (let index = 0; index < text.length; index += 1) {
    const sign = text.charAt(index)
    if (sign === '"') isText = !isText
    if (isText && sign === '\\') index += 1
    if (isText) continue
    if (sign === '[' || sign === '{') depth += 1
    if (sign === ']' || sign === '}') depth -= 1
    if (depth > deepest) deepest = depth
  }
  return deepest
}

/** The bytes of the record that failed, as its producer wrote them. */
export function originalValue(envelope: WrittenValue): Buffer | null {
  if (envelope.original_encoding === 'base64') return Buffer.from(String(envelope.original_value), 'base64')
  if (envelope.original_text !== undefined) return Buffer.from(envelope.original_text)
  return envelope.original_value === null ? null : Buffer.from(JSON.stringify(envelope.original_value))
}

export function originalKey(envelope: WrittenKey): Buffer | null {
  if (envelope.original_key === null) return null
  return Buffer.from(envelope.original_key, envelope.original_key_encoding === 'base64' ? 'base64' : 'utf8')
}
