import { randomBytes } from 'node:crypto'
import type { ClaimRequest, SubscribedType, Subscription } from '../../engine/engine.ts'
import type { Lease } from '../../engine/outcome.ts'
import { fromIso, toIso } from '../../time/iso.ts'
import type { Connection } from './database.ts'
import { reviewSuccessors } from './dependencies.ts'
import { recordEvent } from './history.ts'
import { type ExpiredRow, type JobColumns, type JobRow, toJobRow, toLease, toMs } from './rows.ts'
import {
  BURY_EXHAUSTED,
  COUNT_STARTS,
  FIND_EXPIRED,
  FORGET_STARTS,
  LEASE_EXPIRED,
  LEASE_ROWS,
  MOVE_STARTS,
  NEXT_EXPIRY,
  PEEK,
  PROBE,
  READ_LANE,
  READ_ROWS,
  RECORD_STARTS,
} from './statements.ts'

/** When there will be something to claim, as far as the database knows now. */
export interface Outlook {
  readonly ready: boolean
  /** The next moment something falls due; null when nothing is scheduled. */
  readonly nextMs: number | null
}

type Bounds = Pick<ClaimRequest, 'max' | 'perType'>

interface Lane {
  readonly type: SubscribedType
  /** How many of the type may be claimed now. */
  readonly max: number
  /** When the rate limit lets the next one through, if it holds any back now. */
  readonly freeAtMs: number | null
}

function openLanes(
  connection: Connection,
  types: readonly SubscribedType[],
  bounds: Bounds,
  nowMs: number,
): readonly Lane[] {
  return types.map((type) => {
    const max = Math.min(bounds.max, bounds.perType?.[type.type] ?? bounds.max)
    if (type.limit === undefined) return { type, max, freeAtMs: null }
    const sinceMs = nowMs - type.limit.perMs
    const used = connection.prepare(COUNT_STARTS).get({ type: type.type, sinceMs }) as {
      starts: number
      oldest_ms: number | null
    }
    const left = Math.max(0, type.limit.max - used.starts)
    const freeAtMs = left > 0 || used.oldest_ms === null ? null : used.oldest_ms + type.limit.perMs
    return { type, max: Math.min(max, left), freeAtMs }
  })
}

interface Peeked {
  readonly type: string
  readonly priority: number
  readonly due: string
}

function peek(connection: Connection, lanes: readonly Lane[]): readonly Peeked[] {
  const open = lanes.filter((lane) => lane.max > 0).map((lane) => lane.type.type)
  if (open.length === 0) return []
  return connection.prepare(PEEK).all({ types: JSON.stringify(open) }) as Peeked[]
}

/** Looks without a lock: only when something is ready is the write lock worth taking. */
export function outlook(
  connection: Connection,
  types: readonly SubscribedType[],
  bounds: Bounds,
  nowMs: number,
): Outlook {
  const lanes = openLanes(connection, types, bounds, nowMs)
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
  return { ready: false, nextMs }
}

export function outlookExpired(connection: Connection, nowMs: number): Outlook {
  const { due } = connection.prepare(NEXT_EXPIRY).get() as { due: string | null }
  const nextMs = toMs(due)
  return { ready: nextMs !== null && nextMs <= nowMs, nextMs }
}

/** Takes the most urgent due jobs. Inside a write transaction. */
export function claimReady(
  connection: Connection,
  types: readonly SubscribedType[],
  bounds: Bounds,
  worker: string,
  nowMs: number,
): readonly Lease[] {
  const lanes = openLanes(connection, types, bounds, nowMs)
  const found = readMostUrgent(connection, lanes, bounds.max, toIso(nowMs))
  const rows = found.filter((row) => hasAttemptsLeft(connection, row, nowMs))
  if (rows.length === 0) return []
  recordStarts(connection, lanes, rows, nowMs)
  return lease(connection, rows, lanes, worker, nowMs)
}

/** Another program may have put back a job whose attempts are used up. It is not started once more (I5). */
function hasAttemptsLeft(connection: Connection, row: JobRow, nowMs: number): boolean {
  if (row.attempts < Math.max(1, row.max_retries)) return true
  const error = `all ${row.max_retries} attempts were used before it was put back; replay it instead`
  connection.prepare(BURY_EXHAUSTED).run({ rowid: row.rowid, now: toIso(nowMs), error })
  recordEvent(connection, { id: row.id, name: 'dead', attempt: row.attempts, worker: null, detail: { error } }, nowMs)
  reviewSuccessors(connection, row.id, nowMs)
  return false
}

/** Due jobs in order of priority, due time and arrival, at most `max` and of each type at most what its lane lets through. */
function readMostUrgent(connection: Connection, lanes: readonly Lane[], max: number, now: string): readonly JobRow[] {
  const left = new Map(lanes.map((lane) => [lane.type.type, lane.max]))
  const ready = peek(connection, lanes).filter((peeked) => peeked.due <= now)
  const taken: JobRow[] = []
  for (const [priority, peers] of Map.groupBy(ready, (peeked) => peeked.priority)) {
    const wanted = max - taken.length
    if (wanted <= 0) break
    const probes = peers
      .map(({ type }) => ({ type, priority, now, max: Math.min(wanted, left.get(type) ?? 0) }))
      .filter((probe) => probe.max > 0)
    for (const row of readPriority(connection, probes, wanted)) {
      taken.push(row)
      left.set(row.type, (left.get(row.type) ?? 0) - 1)
    }
  }
  return taken
}

type Probe = { readonly type: string; readonly priority: number; readonly now: string; readonly max: number }
type Probed = Pick<JobRow, 'rowid' | 'scheduled_at' | 'type'>

/** One type needs one statement; several are merged from the index first, so that only what is taken is read. */
function readPriority(connection: Connection, probes: readonly Probe[], max: number): readonly JobRow[] {
  const [first, ...others] = probes
  if (first === undefined) return []
  if (others.length === 0) return (connection.prepareArrays(READ_LANE).all(first) as JobColumns[]).map(toJobRow)
  const found = probes.flatMap((probe) => connection.prepare(PROBE).all(probe) as Probed[]).sort(byDueThenArrival)
  const rowids = found.slice(0, max).map((row) => row.rowid)
  const rows = connection.prepareArrays(READ_ROWS).all({ rows: JSON.stringify(rowids) }) as JobColumns[]
  return rows.map(toJobRow).sort(byDueThenArrival)
}

function byDueThenArrival(one: Probed, other: Probed): number {
  if (one.scheduled_at === other.scheduled_at) return one.rowid - other.rowid
  return one.scheduled_at < other.scheduled_at ? -1 : 1
}

function recordStarts(connection: Connection, lanes: readonly Lane[], rows: readonly JobRow[], nowMs: number): void {
  for (const { type } of lanes) {
    if (type.limit === undefined) continue
    const starts = rows.filter((row) => row.type === type.type).length
    if (starts === 0) continue
    connection.prepare(FORGET_STARTS).run({ type: type.type, sinceMs: nowMs - type.limit.perMs })
    connection.prepare(RECORD_STARTS).run({ type: type.type, nowMs, starts })
  }
}

/**
 * A claim is recorded before it is committed; its handlers start after that. The window of a rate limit counts from the
 * starts, so what was recorded since `sinceMs` is moved to now.
 */
export function moveStarts(
  connection: Connection,
  types: readonly SubscribedType[],
  { sinceMs, nowMs }: { readonly sinceMs: number; readonly nowMs: number },
): void {
  for (const { type, limit } of types) {
    if (limit !== undefined) connection.prepare(MOVE_STARTS).run({ type, sinceMs, nowMs })
  }
}

/** One token for the whole batch: with the job's id it is unique to this claim. */
function newToken(): string {
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

/** How long a reaper holds what it took over: ample for one settle, short if it dies too. */
const REAPER_LEASE_MS = 30_000

/** Hands expired jobs to the reaper under a fresh token. Inside a write transaction. */
export function claimExpired(
  connection: Connection,
  subscription: Subscription,
  max: number,
  nowMs: number,
): readonly Lease[] {
  const { types, worker } = subscription
  const only = types === 'every' ? null : JSON.stringify(types.map((type) => type.type))
  const rows = connection.prepare(FIND_EXPIRED).all({ now: toIso(nowMs), max, only }) as ExpiredRow[]
  if (rows.length === 0) return []
  const leaseMs = types === 'every' ? REAPER_LEASE_MS : Math.max(...types.map((type) => type.leaseMs))
  const token = newToken()
  connection.prepare(LEASE_EXPIRED).run({
    worker,
    token,
    until: toIso(nowMs + leaseMs),
    now: toIso(nowMs),
    rows: JSON.stringify(rows.map((row) => row.rowid)),
  })
  for (const row of rows) {
    const detail = { startedAtMs: toMs(row.started_at) }
    recordEvent(
      connection,
      { id: row.id, name: 'expired', attempt: row.attempts, worker: row.lease_owner, detail },
      nowMs,
    )
  }
  return rows.map((row) => toLease(row, row.attempts, token, nowMs + leaseMs))
}
