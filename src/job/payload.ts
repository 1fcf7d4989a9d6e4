import type { StandardSchemaV1 } from '@standard-schema/spec'
import { OptionError, PayloadError, ResultError } from '../errors.ts'
import type { AnyJob } from './definition.ts'
import { findLoss } from './json.ts'

/**
 * Encodes a payload and validates the stored form, which is what the worker will see: a Date is text by then. A job without
 * a schema may have no payload.
 */
export async function encodePayload(definition: AnyJob, payload: unknown, bytesMax: number): Promise<string> {
  const text = encodeUnvalidated(definition, payload, bytesMax)
  if (definition.schema !== null) await validate(definition, JSON.parse(text))
  return text
}

/** The same without validation. Synchronous, for jobs without a schema: a batch of them need not wait for each payload. */
export function encodeUnvalidated(definition: AnyJob, payload: unknown, bytesMax: number): string {
  if (payload === undefined && definition.schema === null) return 'null'
  const text = encodeUnchecked(definition.type, payload)
  const bytes = Buffer.byteLength(text)
  if (bytes > bytesMax) {
    throw new PayloadError(
      'ERR_PAYLOAD_TOO_LARGE',
      `the payload of '${definition.type}' has ${bytes} bytes, above the limit of ${bytesMax}; store it elsewhere and pass a reference, or raise 'payloadBytesMax'`,
    )
  }
  return text
}

/** Encodes a payload without validation, for a type without a definition. */
export function encodeUnchecked(type: string, payload: unknown): string {
  const text = toJson(payload)
  const loss = lossOf(payload, text)
  if (text !== undefined && loss === '') return text
  throw new PayloadError(
    'ERR_PAYLOAD_NOT_JSON',
    `the payload of '${type}' ${loss || 'is not JSON'}; pass plain objects, arrays, text, numbers, true, false or null`,
  )
}

/**
 * What the handler receives: parsed, upcast to the current version and validated. Another program may have written
 * anything, so every failure is a PayloadError.
 */
export async function decodePayload(definition: AnyJob, text: string, version: number): Promise<unknown> {
  return validate(definition, readPayload(definition, text, version))
}

/** The same without validation. Synchronous, for jobs without a schema. */
export function readPayload(definition: AnyJob, text: string, version: number): unknown {
  let payload: unknown
  try {
    payload = JSON.parse(text)
  } catch (error) {
    throw new PayloadError(
      'ERR_PAYLOAD_NOT_JSON',
      `Invalid payload: the stored text of '${definition.type}' is not JSON`,
      { cause: error },
    )
  }
  return upcast(definition, payload, version)
}

function upcast(definition: AnyJob, payload: unknown, version: number): unknown {
  if (version === definition.version) return payload
  if (version > definition.version) {
    throw new PayloadError(
      'ERR_PAYLOAD_VERSION',
      `the payload of '${definition.type}' has version ${version}, this worker knows ${definition.version}; deploy the newer worker`,
    )
  }
  if (definition.upcast === null) return payload
  try {
    return definition.upcast(payload, version)
  } catch (error) {
    throw new PayloadError(
      'ERR_PAYLOAD_INVALID',
      `Invalid payload: '${definition.type}' could not be upcast from version ${version}`,
      { cause: error },
    )
  }
}

/** The first few issues are enough. */
const ISSUES_SHOWN_MAX = 5

async function validate(definition: AnyJob, payload: unknown): Promise<unknown> {
  if (definition.schema === null) return payload
  const checked = await applySchema(definition, definition.schema, payload)
  if (checked.issues === undefined) return checked.value
  const shown = checked.issues.slice(0, ISSUES_SHOWN_MAX).map((issue) => `${pathOf(issue.path)}${issue.message}`)
  const left = checked.issues.length - shown.length
  if (left > 0) shown.push(`and ${left} more`)
  throw new PayloadError('ERR_PAYLOAD_INVALID', `Invalid payload: '${definition.type}': ${shown.join('; ')}`)
}

async function applySchema(definition: AnyJob, schema: StandardSchemaV1, payload: unknown) {
  try {
    return await schema['~standard'].validate(payload)
  } catch (error) {
    throw new PayloadError('ERR_PAYLOAD_INVALID', `Invalid payload: the schema of '${definition.type}' threw`, {
      cause: error,
    })
  }
}

type IssuePath = ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined

function pathOf(path: IssuePath): string {
  if (path === undefined || path.length === 0) return ''
  return `${path.map((part) => String(typeof part === 'object' ? part.key : part)).join('.')}: `
}

/** A handler's result as JSON. `undefined` becomes null. */
export function encodeResult(type: string, result: unknown, bytesMax: number): string {
  if (result === undefined) return 'null'
  const text = toJson(result)
  const loss = lossOf(result, text, { isLenient: true })
  if (text === undefined || loss !== '') {
    throw new ResultError(
      'ERR_RESULT_NOT_JSON',
      `the handler of '${type}' returned a value that ${loss || 'is not JSON'}; the work is done, so the job is not retried`,
    )
  }
  if (Buffer.byteLength(text) > bytesMax) {
    throw new ResultError(
      'ERR_RESULT_TOO_LARGE',
      `the handler of '${type}' returned more than ${bytesMax} bytes; store it elsewhere and return a reference`,
    )
  }
  return text
}

export function encodeProgress(type: string, progress: unknown, bytesMax: number): string {
  const text = toJson(progress)
  if (text === undefined || Buffer.byteLength(text) > bytesMax) {
    throw new OptionError(`the progress of '${type}' is not JSON or is above ${bytesMax} bytes`)
  }
  return text
}

/** What JSON would lose, as the end of a sentence, or ''. `text` is undefined if encoding failed. */
function lossOf(value: unknown, text: string | undefined, rule?: { readonly isLenient: boolean }): string {
  try {
    const loss = findLoss(value, rule)
    if (loss === null) return text === undefined ? 'is not JSON' : ''
    return `has ${loss.what}${loss.path === '' ? '' : ` at '${loss.path}'`}, which JSON cannot keep`
  } catch {
    return 'is not JSON'
  }
}

/** Undefined for functions, symbols, BigInt, cycles, and objects whose toJSON throws. */
function toJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch {
    return undefined
  }
}
