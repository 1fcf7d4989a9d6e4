import { systemClock } from '../../time/clock.ts'
import { toIso } from '../../time/iso.ts'
import type { JobRow } from './rows.ts'

export interface Cursor {
  readonly priority: number
  /** Jobs of this priority due before it were claimed already. */
  readonly since: string
}

/** At least this often a claim starts from the beginning, whatever it costs. */
const RESET_MS_MAX = 1_000
const RESET_MS_MIN = 100
/** … and otherwise so rarely that such claims take a twentieth of the time. */
const RESET_SHARE = 20
/** A claim that found nothing behind the cursor looks before it, so rarely that this takes a fifth of the time. */
const LOOK_BACK_SHARE = 4
/**
 * How long an enqueue may take from reading the time to its commit without its jobs being passed over. Index entries of
 * this long are walked again.
 */
const LATE_MS = 100
/** A consumer that claimed fewer jobs than this while there were more gains nothing from a cursor … */
const WORTH_JOBS = 500
/** … unless a claim from the beginning takes long, because other consumers claimed many. */
const WORTH_MS = 8

/** Dates beyond these have an ISO form that Postgres does not read. */
const YEAR_1_MS = -62_135_596_800_000
const YEAR_9999_MS = 253_370_764_800_000

/**
 * Where the last claims stopped. While an old transaction is open, index entries of claimed jobs cannot be removed, and a
 * claim from the beginning walks them all. One that starts where the last one stopped does not (measured: 17 instead of 7
 * thousand jobs/s after 120 thousand jobs). A job before the cursor waits until the cursor is reset: when a job was put
 * back or got an earlier time, when a claim finds nothing, and at a short interval, because a slow enqueue may commit
 * behind the cursor.
 */
export class Cursors {
  readonly #cursors = new Map<string, Cursor>()
  #taken = 0
  #resetAtMs = 0
  #lookBackAtMs = 0
  #costMs = 0
  #resets = 0

  of(type: string): Cursor | null {
    if (this.#cursors.size > 0 && systemClock.monotonicMs() >= this.#resetAtMs) this.#cursors.clear()
    return this.#cursors.get(type) ?? null
  }

  /** Call the returned function when the claim is done. */
  measure(withCursor: boolean): () => void {
    const startedAtMs = systemClock.monotonicMs()
    return () => {
      const nowMs = systemClock.monotonicMs()
      if (withCursor) return
      this.#costMs = nowMs - startedAtMs
      this.#lookBackAtMs = nowMs + this.#costMs * LOOK_BACK_SHARE
      this.#resetAtMs = nowMs + Math.min(RESET_MS_MAX, Math.max(RESET_MS_MIN, this.#costMs * RESET_SHARE))
    }
  }

  /** Read it before the claim, and pass it to `advance`. */
  get resets(): number {
    return this.#resets
  }

  /**
   * `rows`: the claimed jobs in order of urgency, of at most `max`. A claim that was under way at a reset does not know the
   * earlier job.
   */
  advance(rows: readonly JobRow[], { max, resets }: { readonly max: number; readonly resets: number }): void {
    this.#taken = rows.length < max ? 0 : this.#taken + rows.length
    if (resets !== this.#resets) return
    if (this.#taken < WORTH_JOBS && this.#costMs < WORTH_MS) return
    const last = new Map<string | null, JobRow>()
    for (const row of rows) last.set(row.type, row)
    for (const [type, { priority, run_ms: runMs }] of last) {
      if (type === null) continue
      const sinceMs = runMs - LATE_MS
      // … or -infinity, where no cursor can start.
      if (!(sinceMs > YEAR_1_MS && sinceMs < YEAR_9999_MS)) this.#cursors.delete(type)
      else this.#cursors.set(type, { priority, since: toIso(sinceMs) })
    }
  }

  reset(): void {
    this.#resets += 1
    this.#cursors.clear()
  }

  /** When a claim that found nothing may look before the cursor; Infinity where there is none. */
  get lookBackInMs(): number {
    if (!this.isActive) return Number.POSITIVE_INFINITY
    return Math.max(0, this.#lookBackAtMs - systemClock.monotonicMs())
  }

  get isActive(): boolean {
    return this.#cursors.size > 0
  }
}
