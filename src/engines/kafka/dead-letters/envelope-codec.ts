/** The envelope as it is written: as JSON, with the value of the record in it once. */

import { fromIso, toIso } from '../../../time/iso.ts'
import { textOf } from '../record.ts'
import type { Envelope } from './envelope.ts'

/**
 * The text of the envelope. A value that JSON written anew would change (100.50, spaces, integers beyond 2^53) stands in
 * it as its producer wrote it, so a letter is hardly larger than its record, and no reader needs to know about it.
 */
export function encodeEnvelope(envelope: Envelope): string {
  const { original_text: text, ...fields } = envelope
  // A record whose text is `null` is no tombstone, and only this field says so.
  if (text === undefined || envelope.original_value === null) return JSON.stringify(envelope)
  const bare = text.trim()
  const start = text.indexOf(bare)
  const margins = [text.slice(0, start), text.slice(start + bare.length)]
  const written = {
    ...fields,
    ...(bare !== text && { original_margins: margins }),
  }
  const entries = Object.entries(written).map(
    ([name, value]) => `${JSON.stringify(name)}:${name === VALUE ? bare : JSON.stringify(value)}`,
  )
  return `{${entries.join(',')}}`
}

const VALUE = 'original_value' satisfies keyof Envelope

/**
 * The value as it stands in the text of an envelope, if JSON written anew would differ from it; else undefined. `text` is
 * JSON, an object, and `value` is what it says.
 */
export function writtenText(text: string, value: unknown, margins: unknown): string | undefined {
  if (value === null || value === undefined) return undefined
  const [before, after] = isMargins(margins) ? margins : ['', '']
  const hasMargins = before !== '' || after !== ''
  // By far the most, and found out much sooner than by walking through the text.
  if (!hasMargins && text.includes(`"${VALUE}":${JSON.stringify(value)}`)) return undefined
  const found = fieldOf(text, VALUE)
  if (found === null || (!hasMargins && found === JSON.stringify(value))) return undefined
  return `${before}${found}${after}`
}

const SPACE = /^[ \t\r\n]*$/

function isMargins(given: unknown): given is readonly [string, string] {
  return (
    Array.isArray(given) && given.length === 2 && given.every((part) => typeof part === 'string' && SPACE.test(part))
  )
}

/** The text of a field of the object that the text is, as it stands there. Of several, the last, as `JSON.parse` has it. */
function fieldOf(text: string, name: string): string | null {
  let [depth, start, found]: [number, number, string | null] = [0, -1, null]
  let key: string | null = null
  for (let index = 0; index < text.length; index += 1) {
    const sign = text.charAt(index)
    if (sign === '"') {
      const end = endOfString(text, index)
      if (depth === 1 && start < 0) key = text.slice(index, end + 1)
      index = end
    } else if (sign === ':' && depth === 1 && start < 0) {
      start = index + 1
    } else if (depth === 1 && (sign === ',' || sign === '}')) {
      if (key !== null && JSON.parse(key) === name) found = text.slice(start, index).trim()
      start = -1
      key = null
      if (sign === '}') depth -= 1
    } else if (sign === '{' || sign === '[') depth += 1
    else if (sign === '}' || sign === ']') depth -= 1
  }
  return found
}

/** Where the string that begins here ends: at the next quote with an even number of backslashes before it. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0
    while (text.charAt(end - 1 - slashes) === '\\') slashes += 1
    if (slashes % 2 === 0) return end
  }
  return text.length
}

type Fields = Partial<Readonly<Record<string, unknown>>>

/**
 * Reads an envelope, also one that another program wrote, without the fields that we add. Null when it
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
