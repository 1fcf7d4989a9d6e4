import { readFileSync, readlinkSync } from 'node:fs'
import { backgroundClock, type Clock, STEP_MS_MIN, systemClock, THREAD_STARTED_MS } from '../../time/clock.ts'
import { toIso } from '../../time/iso.ts'
import type { Connection } from './database.ts'

/** What is done to the file when the wall clock was set; all other statements are in statements.ts. */

export const READ_CLOCK = `SELECT timeline, offset_ms, stepped_at_ms, step_ms FROM millrace_clock WHERE id = 1`

export const WRITE_CLOCK = `
INSERT INTO millrace_clock (id, timeline, offset_ms, stepped_at_ms, step_ms)
VALUES (1, :timeline, :offsetMs, :steppedAtMs, :stepMs)
ON CONFLICT (id) DO UPDATE SET timeline = excluded.timeline, offset_ms = excluded.offset_ms,
  stepped_at_ms = coalesce(excluded.stepped_at_ms, stepped_at_ms), step_ms = coalesce(excluded.step_ms, step_ms)`

/** A time that SQLite cannot read stays as it is. */
const shifted = (column: string): string => `coalesce(strftime('%Y-%m-%dT%H:%M:%fZ', ${column}, :shift), ${column})`

/** No lease gets longer than it was when it was written: what is left of it at most. One millisecond is for rounding. */
const WHOLE_LEASE = `coalesce(strftime('%Y-%m-%dT%H:%M:%fZ', :now,
  printf('%+.3f seconds', unixepoch(lease_until, 'subsec') - unixepoch(updated_at, 'subsec') + 0.001)), lease_until)`

export const SHIFT_LEASES = `
UPDATE job_queue SET lease_until = min(${shifted('lease_until')}, ${WHOLE_LEASE}), updated_at = :now
WHERE status = 'in_progress' AND lease_until IS NOT NULL`

/** Jobs that were due stay due, and retries keep their delay; every other due time is a time of day. */
export const SHIFT_DUE = `
UPDATE job_queue SET scheduled_at = ${shifted('scheduled_at')}, updated_at = :now
WHERE status = 'queued' AND priority BETWEEN 1 AND 10 AND scheduled_at > :now
  AND (scheduled_at <= :was OR scheduled_at <= :far AND attempts > 0)`

export const SHIFT_STARTS = `UPDATE job_starts SET at_ms = at_ms + :stepMs`

export const SHIFT_LEADERS = `UPDATE millrace_leaders SET until_ms = until_ms + :stepMs`

export const SHIFT_PRESENCE = `UPDATE millrace_presence SET until_ms = until_ms + :stepMs`

/** After a start of the machine nobody knows what passed; what was written in the future cannot be waited for. */
export const CUT_LEASES = `
UPDATE job_queue SET lease_until = ${WHOLE_LEASE}, updated_at = :now
WHERE status = 'in_progress' AND lease_until > :now AND updated_at > :now`

export const CUT_STARTS = `UPDATE job_starts SET at_ms = :nowMs WHERE at_ms > :nowMs`

export const CUT_PRESENCE = `UPDATE millrace_presence SET until_ms = :nowMs WHERE at_ms > :nowMs AND until_ms > :nowMs`

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

/** A monotonic clock that several views of a file may share. */
export interface Timeline {
  /** Two views with the same id can compare their readings. */
  readonly id: string
  /** Whether it is this machine's, and not a clock that was injected. */
  readonly isMachine: boolean
  monotonicMs(): number
}

let machineId: string | null = null

const injected = new WeakMap<Clock, string>()

/** All processes of one start of a machine read the same monotonic clock, unless they were given a namespace of time. */
function thisMachine(): string {
  machineId ??= `${process.platform} ${read(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim())} ${read(() => readlinkSync('/proc/self/ns/time'))}`
  return machineId
}

/**
 * Empty where the system does not tell. Readings from before a restart of the machine are then taken for this one's,
 * and a lease of before ends within its own length after it.
 */
function read(look: () => string): string {
  try {
    return look()
  } catch {
    return ''
  }
}

export function timelineOf(clock: Clock): Timeline {
  if (clock === systemClock || clock === backgroundClock) {
    return { id: thisMachine(), isMachine: true, monotonicMs: () => clock.monotonicMs() + THREAD_STARTED_MS }
  }
  const id = injected.get(clock) ?? `injected ${crypto.randomUUID()}`
  injected.set(clock, id)
  return { id, isMachine: false, monotonicMs: () => clock.monotonicMs() }
}
