import { MillraceError } from '../errors.ts'
import type { ErrorRecord, StoredJob } from '../job/job.ts'
import type { Keep } from '../job/keep.ts'

/** The right to run one job once. Every later call about this start presents it. */
export interface Lease {
  readonly job: StoredJob
  /** 1 for the first start. Failures and lost leases count, releases do not. */
  readonly attempt: number
  /** Opaque fence, new at every claim. */
  readonly token: string
  /** Null when the engine watches liveness itself. */
  readonly expiresAtMs: number | null
  /** The store's own rules have decided that the job fails, and why. It is settled as dead without being run. */
  readonly verdict?: string
  /**
   * The job has failed for good, and the store could not record that: it is settled as dead with this error and not run
   * again. Such a lease does not count as a start.
   */
  readonly failure?: ErrorRecord
}

/** What became of a start. The core decides it; the engine only carries it out. */
export type Outcome =
  | ({
      readonly kind: 'complete'
      /** JSON text */
      readonly result: string
      readonly durationMs: number
    } & Keep)
  | { readonly kind: 'retry'; readonly delayMs: number; readonly error: ErrorRecord }
  /** Each dead letter that goes by `keep` leaves an entry in the audit. */
  | ({ readonly kind: 'dead'; readonly error: ErrorRecord } & Keep)
  /** Back to the queue, the attempt given back. A delay defers it (offline, rate limit). */
  | { readonly kind: 'release'; readonly delayMs: number; readonly reason: string }

export interface Settlement {
  readonly lease: Lease
  readonly outcome: Outcome
}

export type LostReason = 'expired' | 'revoked' | 'superseded' | 'cancelled'

export interface Lost {
  readonly lease: Lease
  readonly reason: LostReason
}

/**
 * The store refused an outcome for the text in it, which its encoding or a rule of its own does not allow. The lease still
 * holds: the core settles it again with `withoutText`.
 */
export interface Unstorable {
  readonly lease: Lease
  readonly reason: 'unstorable'
  readonly error: unknown
}

/** Why an outcome was not applied. */
export type NotApplied = Lost | Unstorable

/** Lost because its time was over, not because somebody ended the job. */
export function isExpired(lost: NotApplied | null | undefined): lost is Lost {
  return lost?.reason === 'expired'
}

const NO_RESULT: ErrorRecord = {
  name: 'ResultError',
  code: 'ERR_STORAGE_REFUSED',
  message: 'the store refused the text of the result; the work was done, so it is not retried',
  stack: null,
}

const NO_ERROR: ErrorRecord = {
  name: 'Error',
  code: 'ERR_STORAGE_REFUSED',
  message: `the store refused the text of this error; the worker's log has it`,
  stack: null,
}

/**
 * The outcome without the text that the store refused: a failure keeps its kind and loses its message. A completion becomes
 * a dead letter, because a caller that waits for the result must not get a different one.
 */
export function withoutText(outcome: Outcome): Outcome {
  switch (outcome.kind) {
    case 'complete':
      return { kind: 'dead', error: NO_RESULT }
    case 'retry':
    case 'dead':
      return { ...outcome, error: NO_ERROR }
    case 'release':
      return { ...outcome, reason: 'released' }
    default:
      return outcome satisfies never
  }
}

/** What to tell about it. It names what the store will not: an error's own words, never a result. */
export function refusedText({ job }: Lease, outcome: Outcome, cause: unknown): MillraceError {
  const lost = outcome.kind === 'retry' || outcome.kind === 'dead' ? `: ${outcome.error.message}` : ''
  return new MillraceError(
    'ERR_STORAGE_REFUSED',
    `the store refused the text of the outcome '${outcome.kind}' of job ${job.id}, which is stored without it${lost}`,
    { cause },
  )
}
