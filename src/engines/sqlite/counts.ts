import { NO_JOBS } from '../../engine/counts.ts'
import type { Counts, TypeCounts } from '../../engine/engine.ts'
import type { StoredState } from '../../job/states.ts'
import { systemClock } from '../../time/clock.ts'
import { toIso } from '../../time/iso.ts'
import type { SqliteCore } from './core.ts'
import { Connection, inSnapshot, openReader } from './database.ts'
import { typesOf } from './inspector.ts'

export const LAST_ROW = `SELECT max(rowid) AS last FROM job_queue`

export const COUNT_STATES = `SELECT type, status, count(*) AS jobs FROM job_queue INDEXED BY idx_job_queue_type GROUP BY type, status`

export const COUNT_READY = `
SELECT type, count(*) AS jobs FROM job_queue INDEXED BY idx_job_queue_claim
WHERE status = 'queued' AND waiting_for = 0 AND scheduled_at <= :now GROUP BY type`

/** Due, but waiting for a running job of the same latest key. */
export const COUNT_HELD_BACK = `
SELECT type, count(*) AS jobs FROM job_queue INDEXED BY idx_job_queue_latest
WHERE latest_key IS NOT NULL AND status = 'queued' AND waiting_for > 0 AND scheduled_at <= :now GROUP BY type`

export const COUNT_DEAD = `
SELECT type, count(*) AS jobs FROM job_queue INDEXED BY idx_job_queue_dead
WHERE status = 'dead_letter' AND ended IS NULL GROUP BY type`

/** Rows of one index, in its order, after a place in it. A slice is the next 1 000 of them. */
interface Rows {
  readonly index: string
  readonly where: string
  /** The columns of a place. */
  readonly order: readonly string[]
  /** After the place: one condition, or one for the rows equal to it but for the rowid, and one for those after them. */
  readonly after: readonly string[]
  /** Which of them count; all, if it is left out. */
  readonly counted?: { readonly columns: string; readonly where: string }
}

const SLICE = 1_000

const rowsOf = ({ index, where, order, after }: Rows, more: string): string =>
  `${after
    .map((after) => `SELECT ${order.join(', ')}${more} FROM job_queue INDEXED BY ${index} WHERE ${where} AND ${after}`)
    .join(' UNION ALL ')} ORDER BY ${order.map((_, place) => place + 1).join(', ')}`

const sliceOf = (rows: Rows): string => {
  const { columns = '', where = 'true' } = rows.counted ?? {}
  return `SELECT count(*) AS jobs FROM (${rowsOf(rows, columns)} LIMIT ${SLICE}) WHERE ${where}`
}

/** The last row of a slice; none if fewer are left. */
const endOf = (rows: Rows): string => `${rowsOf(rows, '')} LIMIT 1 OFFSET ${SLICE - 1}`

const OF_STATE: Rows = {
  index: 'idx_job_queue_type',
  where: 'type = :type AND status = :status',
  order: ['rowid'],
  after: ['rowid > :rowid'],
}
const READY: Rows = {
  index: 'idx_job_queue_claim',
  where: `type = :type AND priority = :priority AND status = 'queued' AND waiting_for = 0 AND scheduled_at <= :now`,
  order: ['scheduled_at', 'rowid'],
  after: ['scheduled_at = :scheduled_at AND rowid > :rowid', 'scheduled_at > :scheduled_at'],
}
const HELD_BACK: Rows = {
  index: 'idx_job_queue_latest',
  where: 'type = :type AND latest_key IS NOT NULL',
  order: ['latest_key', 'status', 'rowid'],
  after: [
    'latest_key = :latest_key AND status = :status AND rowid > :rowid',
    '(latest_key, status) > (:latest_key, :status)',
  ],
  counted: {
    columns: ', waiting_for, scheduled_at',
    where: `status = 'queued' AND waiting_for > 0 AND scheduled_at <= :now`,
  },
}
const DEAD: Rows = {
  index: 'idx_job_queue_ended',
  where: `type = :type AND status = 'dead_letter' AND ended IS NULL`,
  order: ['rowid'],
  after: ['rowid > :rowid'],
}

export const SLICE_OF_STATE: string = sliceOf(OF_STATE)
export const END_OF_STATE: string = endOf(OF_STATE)
export const SLICE_READY: string = sliceOf(READY)
export const END_READY: string = endOf(READY)
export const SLICE_HELD_BACK: string = sliceOf(HELD_BACK)
export const END_HELD_BACK: string = endOf(HELD_BACK)
export const SLICE_DEAD: string = sliceOf(DEAD)
export const END_DEAD: string = endOf(DEAD)

/** Up to so many rows are counted in one go: this takes a few milliseconds. */
const AT_ONCE_MAX = 30_000
/** After this time the event loop turns. */
const TURN_MS = 2

interface TypeCount {
  readonly type: string
  readonly jobs: number
}

/** How many jobs of each type are in each state, all at one moment. */
export async function countJobs(core: SqliteCore): Promise<Counts> {
  const now = toIso(core.clock.nowMs())
  const { connection } = core
  const found = await core.read('counts', () => {
    const reader = isLarge(connection) ? openReader(connection.handle) : null
    return reader === null ? { counts: inSnapshot(connection, () => countAtOnce(connection, now)) } : { reader }
  })
  if ('counts' in found) return found.counts
  const counting = new Connection(found.reader)
  try {
    // Its first read fixes the moment. It holds no lock that a writer waits for.
    counting.exec('BEGIN')
    return await countInSlices(counting, now)
  } finally {
    counting.close()
  }
}

function isLarge(connection: Connection): boolean {
  const { last } = connection.prepare(LAST_ROW).get() as { last: number | null }
  return (last ?? 0) > AT_ONCE_MAX
}

function countAtOnce(connection: Connection, now: string): Counts {
  const counts = new Map<string, TypeCounts>()
  const add = (type: string, jobs: Partial<TypeCounts>): void => {
    counts.set(type, { ...(counts.get(type) ?? NO_JOBS), ...jobs })
  }
  const due = new Map<string, number>()
  for (const statement of [COUNT_READY, COUNT_HELD_BACK]) {
    const rows = connection.prepare(statement).all({ now }) as TypeCount[]
    for (const { type, jobs } of rows) due.set(type, (due.get(type) ?? 0) + jobs)
  }
  for (const { type, status, jobs } of connection.prepare(COUNT_STATES).all() as (TypeCount & {
    status: StoredState
  })[]) {
    const ready = due.get(type) ?? 0
    if (status === 'queued') add(type, { ready, delayed: jobs - ready })
    else add(type, status === 'in_progress' ? { inProgress: jobs } : status === 'completed' ? { completed: jobs } : {})
  }
  for (const { type, jobs } of connection.prepare(COUNT_DEAD).all() as TypeCount[]) add(type, { dead: jobs })
  return Object.fromEntries(counts)
}

type Place = Readonly<Record<string, string | number>>

/** Before every text and every row. */
const FIRST_ROW = { rowid: Number.MIN_SAFE_INTEGER }
const FIRST_READY = { scheduled_at: '', ...FIRST_ROW }
const FIRST_LATEST = { latest_key: '', status: '', ...FIRST_ROW }
const PRIORITIES = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]

/** Millions of jobs take seconds, so the event loop turns meanwhile. */
async function countInSlices(connection: Connection, now: string): Promise<Counts> {
  let turnedAtMs = systemClock.monotonicMs()
  const ask = (sql: string, given: Place): unknown =>
    connection.prepare(sql).get(sql.includes(':now') ? { ...given, now } : given)
  const count = async (slice: string, end: string, of: Place, first: Place): Promise<number> => {
    let jobs = 0
    for (let place: Place | undefined = first; place !== undefined; ) {
      jobs += (ask(slice, { ...of, ...place }) as TypeCount).jobs
      place = ask(end, { ...of, ...place }) as Place | undefined
      if (systemClock.monotonicMs() - turnedAtMs < TURN_MS) continue
      await new Promise<void>((resolve) => setImmediate(resolve))
      turnedAtMs = systemClock.monotonicMs()
    }
    return jobs
  }
  const ofState = (type: string, status: StoredState): Promise<number> =>
    count(SLICE_OF_STATE, END_OF_STATE, { type, status }, FIRST_ROW)
  const counts: Record<string, TypeCounts> = {}
  for (const type of typesOf(connection)) {
    let ready = await count(SLICE_HELD_BACK, END_HELD_BACK, { type }, FIRST_LATEST)
    for (const priority of PRIORITIES) ready += await count(SLICE_READY, END_READY, { type, priority }, FIRST_READY)
    counts[type] = {
      ready,
      delayed: (await ofState(type, 'queued')) - ready,
      inProgress: await ofState(type, 'in_progress'),
      completed: await ofState(type, 'completed'),
      dead: await count(SLICE_DEAD, END_DEAD, { type }, FIRST_ROW),
    }
  }
  return counts
}
