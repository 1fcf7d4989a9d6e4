import { Offline, PayloadError, RetryAfter } from '../errors.ts'
import { parseDurationMs } from '../time/duration.ts'
import { type Backoff, backoffMs } from './backoff.ts'
import { isFinal } from './classify.ts'
import { type Redactor, toErrorRecord } from './error-record.ts'
import type { ErrorRecord } from './job.ts'

/** What the policy answers to a failed attempt; the worker turns it into the engine's outcome as it is. */
export type Verdict =
  | { readonly kind: 'retry'; readonly delayMs: number; readonly error: ErrorRecord }
  | { readonly kind: 'dead'; readonly error: ErrorRecord }
  | { readonly kind: 'release'; readonly delayMs: number; readonly reason: string }

export interface FailedAttempt {
  /** The start that failed, 1 for the first. */
  readonly attempt: number
  /** Starts allowed in total. */
  readonly attempts: number
  readonly backoff: Backoff
  readonly error: unknown
}

/** A worker that is older than the payload gives the job back for this long, so that a newer one can take it. */
const NEWER_PAYLOAD_DELAY_MS = 10_000

/**
 * What becomes of a failed attempt. Pure: the same failure, the same answer.
 *
 * Offline and a payload from a newer version are nobody's fault and use no attempt. A final error, or the last attempt,
 * makes a dead letter (I5). Everything else waits its backoff.
 */
export function decide(failed: FailedAttempt, random: () => number, redactor?: Redactor): Verdict {
  const { error } = failed
  if (error instanceof Offline) {
    return { kind: 'release', delayMs: parseDurationMs(error.delay, 'Offline.delay'), reason: 'offline' }
  }
  if (error instanceof PayloadError && error.code === 'ERR_PAYLOAD_VERSION') {
    return { kind: 'release', delayMs: NEWER_PAYLOAD_DELAY_MS, reason: 'payload-version' }
  }
  const record = toErrorRecord(error, redactor)
  if (isFinal(error) || failed.attempt >= failed.attempts) return { kind: 'dead', error: record }
  const delayMs =
    error instanceof RetryAfter
      ? parseDurationMs(error.delay, 'RetryAfter.delay')
      : backoffMs(failed.backoff, failed.attempt, random)
  return { kind: 'retry', delayMs, error: record }
}

/**
 * `decide` for callers that must have an answer. A delay or stored backoff that cannot be read, or a redactor that
 * throws, would otherwise leave the job without an outcome: it becomes a dead letter whose error says what was wrong.
 */
export function decideAlways(failed: FailedAttempt, random: () => number, redactor?: Redactor): Verdict {
  try {
    return decide(failed, random, redactor)
  } catch (error) {
    return { kind: 'dead', error: toErrorRecord(error) }
  }
}
