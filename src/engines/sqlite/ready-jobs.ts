import { effectiveRank } from '../../job/ageing.ts'
import { fromIso, toIso } from '../../time/iso.ts'
import type { Connection } from './database.ts'
import type { Lane } from './lanes.ts'
import { JOB_COLUMNS, type JobColumns, type JobRow, toJobRow } from './rows.ts'

/**
 * The earliest due time of each (type, priority) that has claimable jobs: two index seeks each, and one for each type,
 * however many jobs are stored.
 */
export const PEEK = `
WITH RECURSIVE ranks(type, priority) AS (
  SELECT value, (SELECT priority FROM job_queue INDEXED BY idx_job_queue_claim
    WHERE type = value AND status = 'queued' AND waiting_for = 0 ORDER BY priority LIMIT 1)
  FROM json_each(:types)
  UNION ALL
  SELECT type, (SELECT priority FROM job_queue INDEXED BY idx_job_queue_claim
    WHERE type = ranks.type AND priority > ranks.priority AND status = 'queued' AND waiting_for = 0
    ORDER BY priority LIMIT 1)
  FROM ranks WHERE priority IS NOT NULL)
SELECT type, priority, (SELECT scheduled_at FROM job_queue INDEXED BY idx_job_queue_claim
  WHERE type = ranks.type AND priority = ranks.priority AND status = 'queued' AND waiting_for = 0
  ORDER BY scheduled_at LIMIT 1) AS due
FROM ranks WHERE priority IS NOT NULL`

/** The first due jobs of one type and priority. */
export const READ_LANE = `
SELECT ${JOB_COLUMNS} FROM job_queue INDEXED BY idx_job_queue_claim
WHERE type = :type AND priority = :priority AND status = 'queued' AND waiting_for = 0 AND scheduled_at <= :now
ORDER BY scheduled_at, rowid LIMIT :max`

/** The same from the index alone, for merging several. */
export const PROBE = `
SELECT rowid, scheduled_at FROM job_queue INDEXED BY idx_job_queue_claim
WHERE type = ? AND priority = ? AND status = 'queued' AND waiting_for = 0 AND scheduled_at <= ?
ORDER BY scheduled_at, rowid LIMIT ? OFFSET ?`

export const READ_ROWS = `SELECT ${JOB_COLUMNS} FROM job_queue WHERE rowid IN (SELECT value FROM json_each(:rows))`

/** The first probe reads this many jobs of each type and priority, and each later one four times as many. */
const PROBED_FIRST = 4
const PROBED_GROWTH = 4

interface Peeked {
  readonly type: string
  readonly priority: number
  readonly due: string
}

export function peek(connection: Connection, lanes: readonly Lane[]): readonly Peeked[] {
  const open = lanes.filter((lane) => lane.max > 0 && lane.tenants === null).map((lane) => lane.type.type)
  if (open.length === 0) return []
  return connection.prepare(PEEK).all({ types: JSON.stringify(open) }) as Peeked[]
}

export interface Wanted {
  readonly max: number
  readonly nowMs: number
  /** Null: strict priority. */
  readonly ageingMs: number | null
}

/**
 * Due jobs in order of effective rank, due time and arrival, at most `max`, and of each type at most what its lane allows.
 * Inside a transaction.
 */
export function readReady(connection: Connection, lanes: readonly Lane[], wanted: Wanted): readonly JobRow[] {
  const now = toIso(wanted.nowMs)
  const left = new Map(lanes.map((lane) => [lane.type.type, lane.max]))
  const ready = peek(connection, lanes).filter(({ due }) => due <= now)
  const [first, ...others] = ready
  if (first === undefined) return []
  if (others.length > 0) return readMerged(connection, ready, left, wanted)
  const { type, priority } = first
  const max = Math.min(wanted.max, left.get(type) ?? 0)
  return (connection.prepareArrays(READ_LANE).all({ type, priority, now, max }) as JobColumns[]).map(toJobRow)
}

/** Where a job stands in the order. */
export interface Place {
  readonly priority: number
  /** The effective one. */
  rank: number
  due: string
  rowid: number
}

/** The jobs of one type and priority, of which the first is known by its place in the order. */
interface Run extends Place {
  readonly type: string
  /** Below every other until the first probe. */
  rowid: number
  /** What the last probe found. */
  probed: readonly [rowid: number, due: string][]
  next: number
  read: number
  chunk: number
}

/**
 * Takes the most urgent job of all runs until there are enough. Within a run that is the order of due time, so its first job
 * tells whether the rest matters: only the runs that contribute are probed, and only as far as they do.
 */
function readMerged(
  connection: Connection,
  ready: readonly Peeked[],
  left: Map<string, number>,
  { max, nowMs, ageingMs }: Wanted,
): readonly JobRow[] {
  const now = toIso(nowMs)
  const probe = connection.prepareArrays(PROBE)
  const runs: Run[] = ready
    .map(({ type, priority, due }) => {
      const unread = { probed: [], next: 0, read: 0, chunk: PROBED_FIRST }
      return { type, priority, due, rank: rankOf({ priority, due }, nowMs, ageingMs), rowid: -1, ...unread }
    })
    .sort(byPlace)
  /** Moves the first run on to its next job, and to its new place. */
  const advance = (run: Run): void => {
    if (run.next === run.probed.length) {
      const limit = Math.min(run.chunk, max)
      run.probed = probe.all(run.type, run.priority, now, limit, run.read) as [number, string][]
      run.read += run.probed.length
      run.next = 0
      run.chunk *= PROBED_GROWTH
    }
    const found = run.probed[run.next]
    runs.shift()
    if (found === undefined) return
    run.next += 1
    run.rowid = found[0]
    run.due = found[1]
    run.rank = rankOf(run, nowMs, ageingMs)
    insert(runs, run)
  }
  const taken: number[] = []
  for (let [run] = runs; run !== undefined && taken.length < max; [run] = runs) {
    const allowed = left.get(run.type) ?? 0
    if (allowed === 0) runs.shift()
    else if (run.rowid < 0) advance(run)
    else {
      taken.push(run.rowid)
      left.set(run.type, allowed - 1)
      advance(run)
    }
  }
  return readRows(connection, taken)
}

/** In the given order. */
export function readRows(connection: Connection, rowids: readonly number[]): readonly JobRow[] {
  const rows = connection.prepareArrays(READ_ROWS).all({ rows: JSON.stringify(rowids) }) as JobColumns[]
  const places = new Map(rowids.map((rowid, place) => [rowid, place]))
  return rows.map(toJobRow).sort((one, other) => (places.get(one.rowid) ?? 0) - (places.get(other.rowid) ?? 0))
}

/** Puts a run into its place among the others, which are in order. */
function insert(runs: Run[], run: Run): void {
  let [low, high] = [0, runs.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    const other = runs[middle]
    if (other !== undefined && byPlace(other, run) < 0) low = middle + 1
    else high = middle
  }
  runs.splice(low, 0, run)
}

export function rankOf(
  { priority, due }: Pick<Place, 'priority' | 'due'>,
  nowMs: number,
  ageingMs: number | null,
): number {
  return ageingMs === null ? priority : effectiveRank(priority, nowMs - fromIso(due), ageingMs)
}

export function byPlace(one: Place, other: Place): number {
  if (one.rank !== other.rank) return one.rank - other.rank
  if (one.due !== other.due) return one.due < other.due ? -1 : 1
  return one.rowid - other.rowid
}
