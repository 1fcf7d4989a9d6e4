import { type ErrorCode, fieldOf, isMillraceError } from '../errors.ts'
import { parseDurationMs } from '../time/duration.ts'
import { type Backoff, backoffMs, checkBackoff } from './backoff.ts'
import { cut, ERROR_MESSAGE_LENGTH_MAX, type Redactor, redact, storable, toErrorRecord } from './error-record.ts'
import type { ErrorRecord } from './job.ts'
import type { Keep } from './keep.ts'

/** What happens after a failed attempt. It is a subset of the engine's outcomes. */
export type Verdict =
  | { readonly kind: 'retry'; readonly delayMs: number; readonly error: ErrorRecord }
  | ({ readonly kind: 'dead'; readonly error: ErrorRecord } & Keep)
  | { readonly kind: 'release'; readonly delayMs: number; readonly reason: string }

export interface FailedAttempt {
  /** The start that failed, 1 for the first. */
  readonly attempt: number
  /** Starts allowed in total. */
  readonly attempts: number
  readonly backoff: Backoff
  /** How many dead letters of the type stay, if this becomes one. Absent: all. */
  readonly keepDead?: Keep
  readonly error: unknown
}

/** A worker older than the payload gives the job back for this long, so that a newer worker can take it. */
const NEWER_PAYLOAD_DELAY_MS = 10_000

/** How the stored reason of a postponed job begins. What the handler said follows. */
export const POSTPONED = 'postponed: '

const RELEASE_DELAY_MS = 60_000
/** A release uses no attempt, so without a pause the handler would be restarted in a tight loop. */
const RELEASE_DELAY_MS_MIN = 100

/**
 * Decides what happens after a failed attempt. Pure, and never throws, because a start without a verdict could not be
 * settled.
 *
 * Offline, Postpone and a payload of a newer version use no attempt. A final error, or the last attempt, makes a dead letter.
 * Everything else is retried after its backoff.
 */
export function decide(failed: FailedAttempt, random: () => number, redactor?: Redactor): Verdict {
  const { error } = failed
  if (isMillraceError(error, 'ERR_OFFLINE')) return released(error, 'Offline.delay', 'offline')
  if (isMillraceError(error, 'ERR_POSTPONED')) {
    const reason = cut(toErrorRecord(error, redactor).message, NOTE_LENGTH_MAX)
    return released(error, 'Postpone.delay', `${POSTPONED}${reason}`)
  }
  if (isMillraceError(error, 'ERR_PAYLOAD_VERSION')) {
    return { kind: 'release', delayMs: NEWER_PAYLOAD_DELAY_MS, reason: 'payload-version' }
  }
  const record = toErrorRecord(error, redactor)
  if (isFinal(error) || failed.attempt >= failed.attempts) return dead(failed, record)
  return retry(failed, random, record)
}

function released(error: unknown, name: string, reason: string): Verdict {
  const delayMs = attemptTo(() => chosenMs(error, name))
  const chosen = typeof delayMs === 'number' ? Math.max(delayMs, RELEASE_DELAY_MS_MIN) : RELEASE_DELAY_MS
  return { kind: 'release', delayMs: chosen, reason }
}

function dead({ keepDead }: FailedAttempt, error: ErrorRecord): Verdict {
  return { kind: 'dead', error, ...keepDead }
}

function retry(failed: FailedAttempt, random: () => number, record: ErrorRecord): Verdict {
  const { error } = failed
  const backoff = attemptTo(() => {
    checkBackoff(failed.backoff)
    return backoffMs(failed.backoff, failed.attempt, random)
  })
  if (typeof backoff !== 'number') return dead(failed, withNote(record, backoff))
  if (!isMillraceError(error, 'ERR_RETRY_AFTER')) return { kind: 'retry', delayMs: backoff, error: record }
  const chosen = attemptTo(() => chosenMs(error, 'RetryAfter.delay'))
  return typeof chosen === 'number'
    ? { kind: 'retry', delayMs: chosen, error: record }
    : { kind: 'retry', delayMs: backoff, error: withNote(record, chosen) }
}

/** The delay that a handler chose. */
function chosenMs(error: unknown, name: string): number {
  const delay = fieldOf(error, 'delay')
  return parseDurationMs(typeof delay === 'number' ? delay : String(delay), name)
}

/** The delay, or why it cannot be computed: a handler's delay and a stored backoff can be anything. */
function attemptTo(compute: () => number): number | string {
  try {
    return compute()
  } catch (error) {
    return isMillraceError(error, 'ERR_OPTION_INVALID') ? error.message : 'the delay could not be computed'
  }
}

const NOTE_LENGTH_MAX = 200

function withNote(record: ErrorRecord, note: string): ErrorRecord {
  const tail = ` (${storable(cut(redact(note), NOTE_LENGTH_MAX))})`
  return { ...record, message: `${cut(record.message, ERROR_MESSAGE_LENGTH_MAX - tail.length)}${tail}` }
}

/** Failures of the network, not of the work. */
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

/** The HTTP status in an HTTP client's error. Exit codes of child processes use the same name, but end at 255. */
function httpStatus(error: unknown): number | null {
  const status = fieldOf(error, 'status')
  return typeof status === 'number' && status >= 300 ? status : null
}

/** `fetch` wraps the error that has the code, once. */
const CAUSES_MAX = 3

/** Whether an error of an HTTP call is worth a retry: network failures, timeouts, 408, 425, 429 and 5xx. False otherwise. */
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

/** Millrace errors that a retry cannot change. */
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
 * Whether a failure is final even with attempts left. Unknown errors are retried; errors with an HTTP status are judged by
 * `isRetryable`.
 */
export function isFinal(error: unknown): boolean {
  if (isMillraceError(error)) return FINAL_CODES.has(error.code)
  return httpStatus(error) !== null && !isRetryable(error)
}
