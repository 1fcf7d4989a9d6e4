import { randomBytes } from 'node:crypto'
import type { Lease } from '../../engine/outcome.ts'
import { fromIso, toIso } from '../../time/iso.ts'
import type { Connection } from './database.ts'
import { reviewSuccessors } from './dependencies.ts'
import { recordEvent } from './history.ts'
import { type Lane, type Opening, openLanes } from './lanes.ts'
import { recordStarts } from './rate-limits.ts'
import { byPlace, type Place, peek, rankOf, readReady, readRows, type Wanted } from './ready-jobs.ts'
import { type JobRow, KEY_RELEASED, toLease, UNLEASED } from './rows.ts'

/** The attempt is counted with the start, so a crash counts too. */
export const LEASE_ROWS = `
UPDATE job_queue SET status = 'in_progress', lease_owner = :worker, lease_until = :until, lease_token = :token,
  started_at = :now, updated_at = :now, attempts = attempts + 1
WHERE rowid IN (SELECT value FROM json_each(:rows))`

export const DEAD_LETTER_EXHAUSTED = `
UPDATE job_queue SET status = 'dead_letter', completed_at = :now, error = :error, ${KEY_RELEASED}, ${UNLEASED} WHERE rowid = :rowid`

export interface NextDue {
  readonly ready: boolean
  /** When the next job falls due; null when none is scheduled. */
  readonly nextMs: number | null
}

/** Reads without a lock. The write lock is taken only when a job is ready. */
export function nextDue(connection: Connection, opening: Opening, nowMs: number): NextDue {
  const lanes = openLanes(connection, opening, nowMs)
  let nextMs: number | null = null
  const consider = (ms: number): void => {
    nextMs = nextMs === null ? ms : Math.min(nextMs, ms)
  }
  for (const lane of lanes) if (lane.freeAtMs !== null) consider(lane.freeAtMs)
  const now = toIso(nowMs)
  for (const { due } of peek(connection, lanes)) {
    if (due <= now) return { ready: true, nextMs: nowMs }
    consider(fromIso(due))
  }
  for (const { max, tenants } of lanes) {
    const due = max === 0 || tenants === null ? null : tenants.jobs.nextDue(tenants.slots, now)
    if (due === null) continue
    if (due <= now) return { ready: true, nextMs: nowMs }
    consider(fromIso(due))
  }
  return { ready: false, nextMs }
}

export interface Claiming extends Opening {
  readonly worker: string
  /** Null: strict priority. */
  readonly ageingMs: number | null
}

/** Takes the most urgent due jobs. Inside a write transaction. */
export function claimReady(connection: Connection, claiming: Claiming, nowMs: number): readonly Lease[] {
  const { bounds, worker, ageingMs } = claiming
  const lanes = openLanes(connection, claiming, nowMs)
  const wanted = { max: bounds.max, nowMs, ageingMs }
  const found = withTenants(connection, lanes, readReady(connection, lanes, wanted), wanted)
  const rows = found.filter((row) => hasAttemptsLeft(connection, row, nowMs))
  if (rows.length === 0) return []
  recordStarts(connection, lanes, rows, nowMs)
  return lease(connection, rows, lanes, worker, nowMs)
}

/**
 * Jobs of types whose tenants have slots of their own stand in an order of their own, so each such type competes with the
 * others by the most urgent of its jobs that may start.
 */
function withTenants(
  connection: Connection,
  lanes: readonly Lane[],
  ready: readonly JobRow[],
  wanted: Wanted,
): readonly JobRow[] {
  const { max, nowMs, ageingMs } = wanted
  const lists = lanes.flatMap((lane) => {
    if (lane.tenants === null || lane.max === 0) return []
    const { jobs, slots } = lane.tenants
    return [[...jobs.take(slots, { ...wanted, max: Math.min(max, lane.max) })]]
  })
  if (lists.every((list) => list.length === 0)) return ready
  const placed = ready.map((row) => ({ rowid: row.rowid, place: placeOf(row, nowMs, ageingMs) }))
  const taken: number[] = []
  for (const all = [placed, ...lists]; taken.length < max; ) {
    const heads = all.flatMap((list) => (list[0] === undefined ? [] : [{ list, ...list[0] }]))
    const [first] = heads.sort((one, other) => byPlace(one.place, other.place))
    if (first === undefined) break
    taken.push(first.rowid)
    first.list.shift()
  }
  return readRows(connection, taken)
}

function placeOf({ rowid, priority, scheduled_at: due }: JobRow, nowMs: number, ageingMs: number | null): Place {
  return { rowid, priority, due, rank: rankOf({ priority, due }, nowMs, ageingMs) }
}

/** Another program may have put back a job that has used its attempts. It becomes a dead letter instead of starting again. */
function hasAttemptsLeft(connection: Connection, row: JobRow, nowMs: number): boolean {
  if (row.attempts < Math.max(1, row.max_retries)) return true
  const error = `all ${row.max_retries} attempts were used before it was put back; replay it instead`
  connection.prepare(DEAD_LETTER_EXHAUSTED).run({ rowid: row.rowid, now: toIso(nowMs), error })
  recordEvent(connection, { id: row.id, name: 'dead', attempt: row.attempts, worker: null, detail: { error } }, nowMs)
  reviewSuccessors(connection, row.id, nowMs)
  return false
}

/** One token for the whole batch: with the job's id it is unique to this claim. */
export function newToken(): string {
  return randomBytes(9).toString('base64url')
}

function lease(
  connection: Connection,
  rows: readonly JobRow[],
  lanes: readonly Lane[],
  worker: string,
  nowMs: number,
): readonly Lease[] {
  const token = newToken()
  const leaseMs = new Map(lanes.map((lane) => [lane.type.type, lane.type.leaseMs]))
  const byLease = Map.groupBy(rows, (row) => leaseMs.get(row.type) ?? 0)
  for (const [ms, group] of byLease) {
    connection.prepare(LEASE_ROWS).run({
      worker,
      token,
      until: toIso(nowMs + ms),
      now: toIso(nowMs),
      rows: JSON.stringify(group.map((row) => row.rowid)),
    })
  }
  return rows.map((row) => toLease(row, row.attempts + 1, token, nowMs + (leaseMs.get(row.type) ?? 0)))
}
