import { systemClock } from '../../time/clock.ts'
import { toIso } from '../../time/iso.ts'
import type { JobRow } from './rows.ts'

export interface Cursor {
  readonly priority: number
  /** Jobs of this priority due before it were taken already. */
  readonly since: string
}

/** Claims from the very beginning are made so often at least, however much they cost. */
const RESET_MS_MAX = 1_000
const RESET_MS_MIN = 100
/** … and otherwise so seldom that they take a twentieth of the time. */
const RESET_SHARE = 20
/** A consumer that has taken fewer jobs than this has left too little behind for a cursor to save anything … */
const WORTH_JOBS = 500
/** … unless others have: a claim from the beginning then takes long. */
const WORTH_MS = 8

/** Dates beyond these are written in a form that Postgres does not read. */
const YEAR_1_MS = -62_135_596_800_000
const YEAR_9999_MS = 253_370_764_800_000

/**
 * Where the last claims stopped. While any old transaction is open, the index entries of jobs that were taken cannot be
 * removed, and a claim from the beginning walks them all; one that starts where the last one stopped does not
 * (measured: 7 against 17 thousand jobs/s after 120 thousand jobs). A job that stands before the cursor waits until it
 * is reset: whenever anyone has put a job back or set an earlier time, and at a short interval, because a job whose
 * enqueue took longer than another's is committed behind it.
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

  /** Call the returned function when the claim is made. */
  measure(withCursor: boolean): () => void {
    const startedAtMs = systemClock.monotonicMs()
    return () => {
      const nowMs = systemClock.monotonicMs()
      if (withCursor) return
      this.#costMs = nowMs - startedAtMs
      this.#resetAtMs = nowMs + Math.min(RESET_MS_MAX, Math.max(RESET_MS_MIN, this.#costMs * RESET_SHARE))
    }
  }

  /** These were taken, in the order of their urgency. */
  advance(rows: readonly JobRow[]): void {
    this.#taken += rows.length
    if (this.#taken < WORTH_JOBS && this.#costMs < WORTH_MS) return
    const last = new Map<string | null, JobRow>()
    for (const row of rows) last.set(row.type, row)
    for (const [type, { priority, run_ms: runMs }] of last) {
      if (type === null) continue
      // Other programs store microseconds, and what was read is rounded.
      const sinceMs = runMs - 1
      // … and -infinity, which is no time to start from.
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
