import { type ErrorCode, fieldOf, isMillraceError } from '../errors.ts'
import { parseDurationMs } from '../time/duration.ts'
import { type Backoff, backoffMs, checkBackoff } from './backoff.ts'
import { cut, ERROR_MESSAGE_LENGTH_MAX, type Redactor, redact, storable, toErrorRecord } from './error-record.ts'
import type { ErrorRecord } from './job.ts'
import type { Keep } from './keep.ts'

/** What the policy answers to a failed attempt; the worker turns it into the engine's outcome as it is. */
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
  /** How many dead letters of the type stay, should this be one; absent: all. */
  readonly keepDead?: Keep
  readonly error: unknown
}

/** A worker that is older than the payload gives the job back for this long, so that a newer one can take it. */
const NEWER_PAYLOAD_DELAY_MS = 10_000

const OFFLINE_DELAY_MS = 60_000
/** It uses no attempt, so without a pause a handler that is offline would be started as fast as the store can. */
const OFFLINE_DELAY_MS_MIN = 100

/**
 * What becomes of a failed attempt. Pure: the same failure, the same answer. It never throws, because a start without
 * a verdict could not be settled.
 *
 * Offline and a payload from a newer version are nobody's fault and use no attempt. A final error, or the last attempt,
 * makes a dead letter (I5). Everything else waits its backoff.
 */
export function decide(failed: FailedAttempt, random: () => number, redactor?: Redactor): Verdict {
  const { error } = failed
  if (isMillraceError(error, 'ERR_OFFLINE')) {
    const delayMs = attemptTo(() => chosenMs(error, 'Offline.delay'))
    const chosen = typeof delayMs === 'number' ? Math.max(delayMs, OFFLINE_DELAY_MS_MIN) : OFFLINE_DELAY_MS
    return { kind: 'release', delayMs: chosen, reason: 'offline' }
  }
  if (isMillraceError(error, 'ERR_PAYLOAD_VERSION')) {
    return { kind: 'release', delayMs: NEWER_PAYLOAD_DELAY_MS, reason: 'payload-version' }
  }
  const record = toErrorRecord(error, redactor)
  if (isFinal(error) || failed.attempt >= failed.attempts) return dead(failed, record)
  return retry(failed, random, record)
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

/** What was computed, or why it could not be: a handler's delay and a stored backoff can be anything. */
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
