import { fromIso, toIso } from '../../../time/iso.ts'
import { writtenText } from './encode-envelope.ts'
import type { Envelope } from './envelope.ts'
import { textOf } from './record.ts'

type Fields = Partial<Readonly<Record<string, unknown>>>

/**
 * Reads an envelope, also one that another program wrote after document D, without the fields that we add. Null when it
 * does not say where the record came from: then it is no envelope, whatever else it says.
 */
export function readEnvelope(value: Buffer | null): Envelope | null {
  const text = value === null ? null : textOf(value)
  const fields = text === null ? null : fieldsOf(text)
  if (text === null || fields === null) return null
  const topic = fields.original_topic
  const partition = wholeOf(fields.original_partition)
  const offset = wholeOf(fields.original_offset)
  if (typeof topic !== 'string' || topic === '' || partition === null || offset === null) return null
  const details = isFields(fields.error_details) ? fields.error_details : {}
  const isBase64 = fields.original_encoding === 'base64' && typeof fields.original_value === 'string'
  const original = originalText(text, fields, isBase64)
  return {
    original_topic: topic,
    original_partition: partition,
    original_offset: offset,
    original_key: keyOf(fields.original_key),
    original_value: fields.original_value ?? null,
    error_details: {
      exception_class: stringOf(details.exception_class),
      message: stringOf(details.message),
      stack_trace: stringOf(details.stack_trace),
    },
    retry_count: wholeOf(fields.retry_count) ?? 0,
    worker_instance: stringOf(fields.worker_instance),
    first_failure_at: timeOf(fields.first_failure_at),
    last_failure_at: timeOf(fields.last_failure_at),
    consumer_group: stringOf(fields.consumer_group),
    worker_type: stringOf(fields.worker_type),
    replay_count: wholeOf(fields.replay_count) ?? 0,
    ...(isBase64 && { original_encoding: 'base64' as const }),
    ...(fields.original_key_encoding === 'base64' && { original_key_encoding: 'base64' as const }),
    ...(typeof fields.error_code === 'string' && { error_code: fields.error_code }),
    ...(original !== undefined && { original_text: original }),
  }
}

/** Letters of earlier versions have the text in a field of its own, beside the value. */
function originalText(text: string, fields: Fields, isBase64: boolean): string | undefined {
  if (typeof fields.original_text === 'string') return fields.original_text
  return isBase64 ? undefined : writtenText(text, fields.original_value, fields.original_margins)
}

function fieldsOf(text: string): Fields | null {
  try {
    const parsed: unknown = JSON.parse(text)
    return isFields(parsed) ? parsed : null
  } catch {
    return null
  }
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function stringOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** Keys of other programs may be numbers. */
function keyOf(value: unknown): string | null {
  if (value === null || value === undefined) return null
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Java programs write a long as a number or as text. */
function wholeOf(value: unknown): number | null {
  const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value
  return typeof number === 'number' && Number.isSafeInteger(number) && number >= 0 ? number : null
}

/** Empty for what is no time. Jackson writes an instant as seconds unless it is told otherwise. */
function timeOf(value: unknown): string {
  if (typeof value === 'number' && Number.isFinite(value) && Math.abs(value) < 1e11) return toIso(value * 1_000)
  return typeof value === 'string' && !Number.isNaN(fromIso(value)) ? toIso(fromIso(value)) : ''
}
