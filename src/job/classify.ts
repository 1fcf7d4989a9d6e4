import { type ErrorCode, fieldOf, isMillraceError } from '../errors.ts'

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

/** The status of an HTTP answer that is an error, as HTTP clients' errors carry it. Exit codes of child processes have the same name and end at 255. */
function httpStatus(error: unknown): number | null {
  const status = fieldOf(error, 'status')
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
    const code = fieldOf(cause, 'code')
    if (typeof code === 'string' && TRANSIENT_CODES.has(code)) return true
    const name = fieldOf(cause, 'name')
    if (typeof name === 'string' && TRANSIENT_NAMES.has(name)) return true
    cause = fieldOf(cause, 'cause')
  }
  return false
}

/** Of ours, those that another try cannot change. */
const FINAL_CODES: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'ERR_NON_RETRYABLE',
  'ERR_RESULT_NOT_JSON',
  'ERR_RESULT_TOO_LARGE',
  'ERR_PREDECESSOR_DEAD',
  'ERR_PAYLOAD_INVALID',
  'ERR_PAYLOAD_TOO_LARGE',
  'ERR_PAYLOAD_NOT_JSON',
])

/**
 * Whether a failed attempt is final whatever attempts are left (X023). Unknown errors are retried; only errors that
 * carry an HTTP status are judged by document A's list.
 */
export function isFinal(error: unknown): boolean {
  if (isMillraceError(error)) return FINAL_CODES.has(error.code)
  return httpStatus(error) !== null && !isRetryable(error)
}
