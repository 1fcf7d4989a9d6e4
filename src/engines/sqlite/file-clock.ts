import type { Clock } from '../../time/clock.ts'
import { toIso } from '../../time/iso.ts'
import { STEP_MS_MIN } from '../../time/steps.ts'
import {
  CUT_LEASES,
  CUT_PRESENCE,
  CUT_STARTS,
  READ_CLOCK,
  SHIFT_DUE,
  SHIFT_LEADERS,
  SHIFT_LEASES,
  SHIFT_PRESENCE,
  SHIFT_STARTS,
  WRITE_CLOCK,
} from './clock-statements.ts'
import type { Connection } from './database.ts'
import { type Timeline, timelineOf } from './timeline.ts'

export interface ClockRow {
  readonly timeline: string
  readonly offset_ms: number
  readonly stepped_at_ms: number | null
  readonly step_ms: number | null
}

/**
 * Keeps the times in the file right when the wall clock is set. Leases, rate limits, offices and presence count elapsed
 * time but are stored as times of day, because other programs read them. Every write transaction first compares the wall
 * clock with the monotonic one; the first that finds them apart moves all of these by the difference, and everybody else
 * finds that done. So no statement ever sees a lease of one time and a clock of another.
 */
export class FileClock {
  readonly #connection: Connection
  readonly #clock: Clock
  readonly #timeline: Timeline
  readonly #onStep: () => void
  #isWatching = false
  /** What the wall clock was ahead of the monotonic one when the times in the file were written; null: not read yet. */
  #offsetMs: number | null = null
  /** What holds as soon as the transaction is committed. */
  #next: { readonly offsetMs: number; readonly stepMs: number } | null = null

  constructor(connection: Connection, clock: Clock, onStep: () => void) {
    this.#connection = connection
    this.#clock = clock
    this.#timeline = timelineOf(clock)
    this.#onStep = onStep
  }

  /** Once the schema is there. Reads, and writes nothing before somebody else writes. */
  watch(): void {
    const row = this.#readRow()
    if (row?.timeline === this.#timeline.id) this.#offsetMs = row.offset_ms
    this.#isWatching = true
  }

  /** Whether the file does not know this clock yet, or not that it was set. */
  get isBehind(): boolean {
    return this.#isWatching && (this.#offsetMs === null || this.#isAhead(this.#offsetMs))
  }

  /** First in every write transaction. */
  begin(): void {
    this.#next = null
    if (this.isBehind) this.#next = this.#reconcile(this.#readOffsetMs())
  }

  committed(): void {
    const next = this.#next
    if (next === null) return
    this.#next = null
    this.#offsetMs = next.offsetMs
    if (next.stepMs !== 0) this.#onStep()
  }

  #readOffsetMs(): number {
    return this.#clock.nowMs() - this.#timeline.monotonicMs()
  }

  #isAhead(offsetMs: number): boolean {
    return Math.abs(this.#readOffsetMs() - offsetMs) >= STEP_MS_MIN
  }

  #readRow(): ClockRow | undefined {
    return this.#connection.prepare(READ_CLOCK).get() as ClockRow | undefined
  }

  #reconcile(offsetMs: number): { readonly offsetMs: number; readonly stepMs: number } {
    const row = this.#readRow()
    const { id: timeline, isMachine } = this.#timeline
    if (row?.timeline === timeline) {
      const stepMs = Math.round(offsetMs - row.offset_ms)
      if (Math.abs(stepMs) < STEP_MS_MIN) return { offsetMs: row.offset_ms, stepMs: 0 }
      const steppedAtMs = this.#clock.nowMs()
      shift(this.#connection, steppedAtMs, stepMs)
      this.#connection.prepare(WRITE_CLOCK).run({ timeline, offsetMs, steppedAtMs, stepMs })
      return { offsetMs, stepMs }
    }
    // Another start of the machine, or nobody yet. Where this process has been here before, others live by another
    // clock than it does, and theirs is not to be replaced again and again.
    if (this.#offsetMs === null) {
      if (isMachine && row !== undefined) cut(this.#connection, this.#clock.nowMs())
      this.#connection.prepare(WRITE_CLOCK).run({ timeline, offsetMs, steppedAtMs: null, stepMs: null })
    }
    return { offsetMs, stepMs: 0 }
  }
}

function shift(connection: Connection, nowMs: number, stepMs: number): void {
  const [now, shift] = [toIso(nowMs), `${stepMs < 0 ? '-' : '+'}${(Math.abs(stepMs) / 1_000).toFixed(3)} seconds`]
  connection.prepare(SHIFT_LEASES).run({ now, shift })
  connection.prepare(SHIFT_STARTS).run({ stepMs })
  connection.prepare(SHIFT_LEADERS).run({ stepMs })
  connection.prepare(SHIFT_PRESENCE).run({ stepMs })
  if (stepMs > 0) return
  connection.prepare(SHIFT_DUE).run({ now, shift, was: toIso(nowMs - stepMs), far: toIso(nowMs - 2 * stepMs) })
}

function cut(connection: Connection, nowMs: number): void {
  connection.prepare(CUT_LEASES).run({ now: toIso(nowMs) })
  connection.prepare(CUT_STARTS).run({ nowMs })
  connection.prepare(CUT_PRESENCE).run({ nowMs })
}
