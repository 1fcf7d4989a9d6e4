import { MillraceError, NonRetryable, PayloadError, PredecessorError, ResultError } from '../errors.ts'

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

/** Errors of HTTP clients carry `status`, those of Node carry `code`. A field that throws when read is not there. */
function field(error: unknown, name: string): unknown {
  try {
    return typeof error === 'object' && error !== null ? Reflect.get(error, name) : undefined
  } catch {
    return undefined
  }
}

/** The status of an HTTP answer that is an error. Exit codes of child processes have the same name and end at 255. */
function httpStatus(error: unknown): number | null {
  const status = field(error, 'status')
  return typeof status === 'number' && status >= 300 ? status : null
}

/** `fetch` wraps the error that has the code, once. */
const CAUSES_MAX = 3

/** Whether an error of an HTTP call is worth another try: document A's list, with its gaps closed. False for anything else. */
export function isRetryable(error: unknown): boolean {
  let cause = error
  for (let depth = 0; depth <= CAUSES_MAX && cause !== undefined; depth += 1) {
    const status = httpStatus(cause)
    if (status !== null) return status >= 500 || TRANSIENT_STATUSES.has(status)
    const code = field(cause, 'code')
    if (typeof code === 'string' && TRANSIENT_CODES.has(code)) return true
    const name = field(cause, 'name')
    if (typeof name === 'string' && TRANSIENT_NAMES.has(name)) return true
    cause = field(cause, 'cause')
  }
  return false
}

/**
 * Whether a failed attempt is final whatever attempts are left (X023). Unknown errors are retried; only errors that
 * carry an HTTP status are judged by document A's list.
 */
export function isFinal(error: unknown): boolean {
  if (error instanceof NonRetryable || error instanceof ResultError || error instanceof PredecessorError) return true
  if (error instanceof PayloadError) return error.code !== 'ERR_PAYLOAD_VERSION'
  if (error instanceof MillraceError) return false
  return httpStatus(error) !== null && !isRetryable(error)
}
