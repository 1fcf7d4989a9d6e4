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
/** A consumer that claimed fewer jobs than this gains nothing from a cursor … */
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
 * back or got an earlier time, and at a short interval, because a slow enqueue may commit behind the cursor.
 */
export class Cursors {
  readonly #cursors = new Map<string, Cursor>()
  #taken = 0
  #resetAtMs = 0
  #costMs = 0

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
      this.#resetAtMs = nowMs + Math.min(RESET_MS_MAX, Math.max(RESET_MS_MIN, this.#costMs * RESET_SHARE))
    }
  }

  /** `rows`: the claimed jobs in order of urgency. */
  advance(rows: readonly JobRow[]): void {
    this.#taken += rows.length
    if (this.#taken < WORTH_JOBS && this.#costMs < WORTH_MS) return
    const last = new Map<string | null, JobRow>()
    for (const row of rows) last.set(row.type, row)
    for (const [type, { priority, run_ms: runMs }] of last) {
      if (type === null) continue
      // Other programs store microseconds, and the time read is rounded.
      const sinceMs = runMs - 1
      // … or -infinity, where no cursor can start.
      if (!(sinceMs > YEAR_1_MS && sinceMs < YEAR_9999_MS)) this.#cursors.delete(type)
      else this.#cursors.set(type, { priority, since: toIso(sinceMs) })
    }
  }

  reset(): void {
    this.#cursors.clear()
  }

  get isActive(): boolean {
    return this.#cursors.size > 0
  }
}
