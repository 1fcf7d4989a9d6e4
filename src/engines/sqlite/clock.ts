import { readFileSync, readlinkSync } from 'node:fs'
import { backgroundClock, type Clock, STEP_MS_MIN, systemClock, THREAD_STARTED_MS } from '../../time/clock.ts'
import { toIso } from '../../time/iso.ts'
import type { Connection } from './database.ts'

export const READ_CLOCK = `SELECT timeline, offset_ms, stepped_at_ms, step_ms FROM millrace_clock WHERE id = 1`

export const WRITE_CLOCK = `
INSERT INTO millrace_clock (id, timeline, offset_ms, stepped_at_ms, step_ms)
VALUES (1, :timeline, :offsetMs, :steppedAtMs, :stepMs)
ON CONFLICT (id) DO UPDATE SET timeline = excluded.timeline, offset_ms = excluded.offset_ms,
  stepped_at_ms = coalesce(excluded.stepped_at_ms, stepped_at_ms), step_ms = coalesce(excluded.step_ms, step_ms)`

/** A time that SQLite cannot read stays as it is. */
const shifted = (column: string): string => `coalesce(strftime('%Y-%m-%dT%H:%M:%fZ', ${column}, :shift), ${column})`

/** Upper bound of a shifted lease: the length it was written with. One millisecond allows for rounding. */
const WHOLE_LEASE = `coalesce(strftime('%Y-%m-%dT%H:%M:%fZ', :now,
  printf('%+.3f seconds', unixepoch(lease_until, 'subsec') - unixepoch(updated_at, 'subsec') + 0.001)), lease_until)`

/**
 * A row that was touched after its lease had ended, or by a program with another clock, does not tell the length of its
 * lease, which is then only moved.
 */
export const SHIFT_LEASES = `
UPDATE job_queue SET updated_at = :now, lease_until = iif(updated_at > lease_until,
  ${shifted('lease_until')}, min(${shifted('lease_until')}, ${WHOLE_LEASE}))
WHERE status = 'in_progress' AND lease_until IS NOT NULL`

/** Due jobs stay due and retries keep their delay. Every other due time is a time of day and stays. */
export const SHIFT_DUE = `
UPDATE job_queue SET scheduled_at = ${shifted('scheduled_at')}, updated_at = :now
WHERE status = 'queued' AND priority BETWEEN 1 AND 10 AND scheduled_at > :now
  AND (scheduled_at <= :was OR scheduled_at <= :far AND attempts > 0)`

export const SHIFT_STARTS = `UPDATE job_starts SET at_ms = at_ms + :stepMs`

export const SHIFT_RECORDS = `
UPDATE millrace_records SET saved_at_ms = saved_at_ms + :stepMs, expires_at_ms = expires_at_ms + :stepMs
WHERE expires_at_ms IS NOT NULL`

/** After the machine restarts, the elapsed time is unknown. A lease written in the future is cut to its own length. */
export const CUT_LEASES = `
UPDATE job_queue SET lease_until = ${WHOLE_LEASE}, updated_at = :now
WHERE status = 'in_progress' AND lease_until > :now AND updated_at > :now`

export const CUT_STARTS = `UPDATE job_starts SET at_ms = :nowMs WHERE at_ms > :nowMs`

export const CUT_RECORDS = `
UPDATE millrace_records SET expires_at_ms = :nowMs WHERE saved_at_ms > :nowMs AND expires_at_ms > :nowMs`

export interface ClockRow {
  readonly timeline: string
  readonly offset_ms: number
  readonly stepped_at_ms: number | null
  readonly step_ms: number | null
}

/**
 * Keeps the times in the file right when the wall clock is set. Leases, rate limits and records that expire measure
 * elapsed time but are stored as times of day, because other programs read them. Every write transaction first compares
 * the wall clock with the monotonic one. The first that finds a difference moves all stored times by it; later ones find
 * that done. So a lease and the clock it is compared with are always on the same scale.
 */
export class StoredClock {
  readonly #connection: Connection
  readonly #clock: Clock
  readonly #timeline: Timeline
  readonly #onStep: () => void
  #isWatching = false
  /** Wall clock minus monotonic clock when the times in the file were written; null until it is read. */
  #offsetMs: number | null = null
  /** Takes effect when the transaction commits. */
  #next: { readonly offsetMs: number; readonly stepMs: number } | null = null

  constructor(connection: Connection, clock: Clock, onStep: () => void) {
    this.#connection = connection
    this.#clock = clock
    this.#timeline = timelineOf(clock)
    this.#onStep = onStep
  }

  /** Call once the schema exists. Only reads: the next write transaction stores the clock. */
  watch(): void {
    const row = this.#readRow()
    if (row?.timeline === this.#timeline.id) this.#offsetMs = row.offset_ms
    this.#isWatching = true
  }

  /** Whether the file has not stored this clock yet, or not its last step. */
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
    // The file was written after another start of the machine, or not at all. A process that stored its clock before
    // shares the file with processes of another clock, and must not replace theirs again and again.
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
  connection.prepare(SHIFT_RECORDS).run({ stepMs })
  if (stepMs > 0) return
  connection.prepare(SHIFT_DUE).run({ now, shift, was: toIso(nowMs - stepMs), far: toIso(nowMs - 2 * stepMs) })
}

function cut(connection: Connection, nowMs: number): void {
  connection.prepare(CUT_LEASES).run({ now: toIso(nowMs) })
  connection.prepare(CUT_STARTS).run({ nowMs })
  connection.prepare(CUT_RECORDS).run({ nowMs })
}

/** A monotonic clock that several connections to a file may share. */
interface Timeline {
  /** Readings with the same id are comparable. */
  readonly id: string
  /** False for an injected clock. */
  readonly isMachine: boolean
  monotonicMs(): number
}

let machineId: string | null = null

const injected = new WeakMap<Clock, string>()

/** Processes share a monotonic clock until the machine restarts, unless they run in another time namespace. */
function thisMachine(): string {
  machineId ??= `${process.platform} ${read(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim())} ${read(() => readlinkSync('/proc/self/ns/time'))}`
  return machineId
}

/**
 * Empty where the system does not say. Readings from before a restart of the machine then count as current, and a lease
 * from before it ends within its own length.
 */
function read(look: () => string): string {
  try {
    return look()
  } catch {
    return ''
  }
}

function timelineOf(clock: Clock): Timeline {
  if (clock === systemClock || clock === backgroundClock) {
    return { id: thisMachine(), isMachine: true, monotonicMs: () => clock.monotonicMs() + THREAD_STARTED_MS }
  }
  const id = injected.get(clock) ?? `injected ${crypto.randomUUID()}`
  injected.set(clock, id)
  return { id, isMachine: false, monotonicMs: () => clock.monotonicMs() }
}
