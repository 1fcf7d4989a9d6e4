import { randomBytes } from 'node:crypto'
import type { SubscribedType } from '../../engine/engine.ts'
import type { Lease } from '../../engine/outcome.ts'
import { effectiveRank } from '../../job/ageing.ts'
import { fromIso, toIso } from '../../time/iso.ts'
import type { Connection } from './database.ts'
import { reviewSuccessors } from './dependencies.ts'
import { recordEvent } from './history.ts'
import { type Bounds, type Lane, openLanes, recordStarts } from './rate-limits.ts'
import { JOB_COLUMNS, type JobColumns, type JobRow, KEY_RELEASED, toJobRow, toLease, UNLEASED } from './rows.ts'

/** The earliest due time of each (type, priority) that has claimable jobs: one index seek each, however many jobs are stored. */
export const PEEK = `
SELECT type, priority, due FROM (
  SELECT types.value AS type, ranks.value AS priority,
    (SELECT scheduled_at FROM job_queue INDEXED BY idx_job_queue_claim
      WHERE type = types.value AND priority = ranks.value AND status = 'queued' AND waiting_for = 0
      ORDER BY scheduled_at LIMIT 1) AS due
  FROM json_each('[1,2,3,4,5,6,7,8,9,10]') AS ranks CROSS JOIN json_each(:types) AS types)
WHERE due IS NOT NULL ORDER BY priority`

/** The first due jobs of one type and priority. */
export const READ_LANE = `
SELECT ${JOB_COLUMNS} FROM job_queue INDEXED BY idx_job_queue_claim
WHERE type = :type AND priority = :priority AND status = 'queued' AND waiting_for = 0 AND scheduled_at <= :now
ORDER BY scheduled_at, rowid LIMIT :max`

/** The same from the index alone, for merging several types of one priority. */
export const PROBE = `
SELECT rowid, scheduled_at, type FROM job_queue INDEXED BY idx_job_queue_claim
WHERE type = :type AND priority = :priority AND status = 'queued' AND waiting_for = 0 AND scheduled_at <= :now
ORDER BY scheduled_at, rowid LIMIT :max`

export const READ_ROWS = `SELECT ${JOB_COLUMNS} FROM job_queue WHERE rowid IN (SELECT value FROM json_each(:rows))`

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

/** Reads without a lock. The write lock is taken only when a job is ready. */
export function nextDue(
  connection: Connection,
  types: readonly SubscribedType[],
  bounds: Bounds,
  nowMs: number,
): NextDue {
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

export interface Claiming {
  readonly types: readonly SubscribedType[]
  readonly bounds: Bounds
  readonly worker: string
  /** Null: strict priority. */
  readonly ageingMs: number | null
}

/** Takes the most urgent due jobs. Inside a write transaction. */
export function claimReady(
  connection: Connection,
  { types, bounds, worker, ageingMs }: Claiming,
  nowMs: number,
): readonly Lease[] {
  const lanes = openLanes(connection, types, bounds, nowMs)
  const found =
    ageingMs === null
      ? readMostUrgent(connection, lanes, bounds.max, toIso(nowMs))
      : readAged(connection, lanes, bounds.max, { nowMs, ageingMs })
  const rows = found.filter((row) => hasAttemptsLeft(connection, row, nowMs))
  if (rows.length === 0) return []
  recordStarts(connection, lanes, rows, nowMs)
  return lease(connection, rows, lanes, worker, nowMs)
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

/** Due jobs in order of priority, due time and arrival, at most `max`, and of each type at most what its lane allows. */
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

/** One type needs one statement. Several are merged from the index first, so that only claimed rows are read. */
function readPriority(connection: Connection, probes: readonly Probe[], max: number): readonly JobRow[] {
  const [first, ...others] = probes
  if (first === undefined) return []
  if (others.length === 0) return (connection.prepareArrays(READ_LANE).all(first) as JobColumns[]).map(toJobRow)
  const found = probes.flatMap((probe) => connection.prepare(PROBE).all(probe) as Probed[]).sort(byDueThenArrival)
  return readRows(connection, found.slice(0, max)).sort(byDueThenArrival)
}

function readRows(connection: Connection, found: readonly Probed[]): JobRow[] {
  const rowids = JSON.stringify(found.map((row) => row.rowid))
  return (connection.prepareArrays(READ_ROWS).all({ rows: rowids }) as JobColumns[]).map(toJobRow)
}

interface Ranked extends Probed {
  readonly rank: number
}

/**
 * The same with ageing: in order of effective rank, due time and arrival. Within a lane that is the order of due time, so
 * its first job tells whether the rest of the lane matters, and only the lanes that can contribute are probed.
 */
function readAged(
  connection: Connection,
  lanes: readonly Lane[],
  max: number,
  { nowMs, ageingMs }: { readonly nowMs: number; readonly ageingMs: number },
): readonly JobRow[] {
  const now = toIso(nowMs)
  const rankOf = (priority: number, due: string): number => effectiveRank(priority, nowMs - fromIso(due), ageingMs)
  const left = new Map(lanes.map((lane) => [lane.type.type, lane.max]))
  const heads = peek(connection, lanes)
    .filter(({ due }) => due <= now)
    .map((head) => ({ ...head, rowid: 0, scheduled_at: head.due, rank: rankOf(head.priority, head.due) }))
    .sort(byRank)
  let taken: readonly Ranked[] = []
  for (const head of heads) {
    const last = taken[max - 1]
    if (last !== undefined && byRank(last, head) < 0) break
    const { type, priority } = head
    const probe: Probe = { type, priority, now, max: Math.min(max, left.get(type) ?? 0) }
    const found = connection.prepare(PROBE).all(probe) as Probed[]
    const ranked = found.map((row) => ({ ...row, rank: rankOf(priority, row.scheduled_at) }))
    taken = mostUrgent([...taken, ...ranked], max, left)
  }
  const places = new Map(taken.map(({ rowid }, place) => [rowid, place]))
  return readRows(connection, taken).sort((one, other) => (places.get(one.rowid) ?? 0) - (places.get(other.rowid) ?? 0))
}

/** At most `max`, and of each type at most what is left of it. */
function mostUrgent(found: readonly Ranked[], max: number, left: ReadonlyMap<string, number>): readonly Ranked[] {
  const counts = new Map<string, number>()
  const isAllowed = ({ type }: Ranked): boolean => {
    const count = (counts.get(type) ?? 0) + 1
    counts.set(type, count)
    return count <= (left.get(type) ?? 0)
  }
  return found.toSorted(byRank).filter(isAllowed).slice(0, max)
}

function byRank(one: Ranked, other: Ranked): number {
  return one.rank === other.rank ? byDueThenArrival(one, other) : one.rank - other.rank
}

function byDueThenArrival(one: Probed, other: Probed): number {
  if (one.scheduled_at === other.scheduled_at) return one.rowid - other.rowid
  return one.scheduled_at < other.scheduled_at ? -1 : 1
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
