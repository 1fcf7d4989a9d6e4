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
