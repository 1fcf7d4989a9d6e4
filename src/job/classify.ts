import { MillraceError, NonRetryable, PayloadError, ResultError } from '../errors.ts'

/** Failures of the way, not of the work (A69–A73, X040). */
const TRANSIENT_NAMES = new Set(['NetworkError', 'TimeoutError', 'AbortError'])
const TRANSIENT_CODES = new Set([
  'ECONNRESET',
  'ECONNREFUSED',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EPIPE',
  'EHOSTUNREACH',
  'ENETUNREACH',
])
const TRANSIENT_STATUSES = new Set([408, 425, 429])

/** An error's field, whatever it is. Errors of HTTP clients carry `status`, those of Node carry `code`. */
function field(error: unknown, name: string): unknown {
  return typeof error === 'object' && error !== null ? Reflect.get(error, name) : undefined
}

/** Whether an error of an HTTP call is worth another try: document A's list, with its gaps closed. False for anything else. */
export function isRetryable(error: unknown): boolean {
  const status = field(error, 'status')
  if (typeof status === 'number') return status >= 500 || TRANSIENT_STATUSES.has(status)
  const code = field(error, 'code')
  return TRANSIENT_NAMES.has(String(field(error, 'name'))) || (typeof code === 'string' && TRANSIENT_CODES.has(code))
}

/**
 * Whether a failed attempt is final whatever attempts are left (X023). Unknown errors are retried; only errors that
 * carry an HTTP status are judged by document A's list.
 */
export function isFinal(error: unknown): boolean {
  if (error instanceof NonRetryable || error instanceof ResultError) return true
  if (error instanceof PayloadError) return error.code !== 'ERR_PAYLOAD_VERSION'
  if (error instanceof MillraceError) return false
  return typeof field(error, 'status') === 'number' && !isRetryable(error)
}
