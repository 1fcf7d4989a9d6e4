import type { Receipt } from '../../engine/engine.ts'
import type { NewJob } from '../../job/job.ts'
import { redirect } from '../../job/predecessors.ts'
import { toIso } from '../../time/iso.ts'
import type { Connection, SqliteValue } from './database.ts'
import { linkPredecessors } from './dependencies.ts'
import { PLAIN, takeLatestPlace } from './latest-keys.ts'
import { KEY_RELEASED } from './rows.ts'
import { addTags } from './tags.ts'
import { RetryIndividually } from './writer.ts'

/** Jobs that differ only in id and payload, many in one statement: two bindings per row instead of nine. */
function insertAlike(count: number): string {
  const row = `(?, ?, :type, :priority, :due, :attempts, :version, :now, :now)`
  return `INSERT INTO job_queue (id, payload, type, priority, scheduled_at, max_retries, payload_version, created_at, updated_at)
VALUES ${Array.from({ length: count }, () => row).join(', ')} ON CONFLICT DO NOTHING`
}

/** A job without a key, dependencies and the like. Without a conflict it needs no other statement. */
export const INSERT_PLAIN = `
INSERT INTO job_queue (id, type, payload, payload_version, priority, scheduled_at, max_retries, created_at, updated_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`

export const INSERT_ONE = `
INSERT INTO job_queue (rowid, id, type, payload, payload_version, priority, scheduled_at, max_retries, created_at,
  updated_at, idempotency_key, latest_key, latest_seq, waiting_for, tenant, options, predecessors)
VALUES (:rowid, :id, :type, :payload, :version, :priority, :due, :attempts, :now, :now,
  :key, :latestKey, :latestSeq, :waitingFor, :tenant, :options, :predecessors)
ON CONFLICT DO NOTHING`

export const FIND_ID = `SELECT id FROM job_queue WHERE id = :id`

/** The column is unique in every state, so a job that another program finished can be in the way too. */
export const FIND_BY_KEY = `
SELECT id, status IN ('completed', 'dead_letter') AS finished FROM job_queue WHERE idempotency_key = :key`

export const RELEASE_KEY = `
UPDATE job_queue SET ${KEY_RELEASED} WHERE idempotency_key = :key AND status IN ('completed', 'dead_letter')`

/** Rows per multi-row INSERT. From 25 to 200 the rate is the same within noise. */
const ALIKE_ROWS = 50
const INSERT_ALIKE = insertAlike(ALIKE_ROWS)

/**
 * Stores the jobs in order. Synchronous, inside a transaction of the writer or of the user. Unless `individually`, it may
 * throw RetryIndividually, and then the transaction must be rolled back.
 */
export function insertJobs(
  connection: Connection,
  jobs: readonly NewJob[],
  { nowMs, individually }: { readonly nowMs: number; readonly individually: boolean },
): readonly Receipt[] {
  const receipts: Receipt[] = []
  const duplicates = new Map<string, string>()
  for (let index = 0; index < jobs.length; ) {
    const run = individually ? 1 : countAlike(jobs, index)
    const alike = jobs.slice(index, index + run)
    if (run === ALIKE_ROWS) receipts.push(...insertAlikeRows(connection, alike, nowMs))
    else
      for (const job of alike) {
        const receipt = insertJob(connection, redirected(job, duplicates), nowMs)
        if (receipt.status === 'duplicate') duplicates.set(job.id, receipt.id)
        receipts.push(receipt)
      }
    index += run
  }
  return receipts
}

/** Successors of a duplicate in this batch wait for the job that it duplicates. */
function redirected(job: NewJob, duplicates: ReadonlyMap<string, string>): NewJob {
  return job.after === null || duplicates.size === 0 ? job : { ...job, after: redirect(job.after, duplicates) }
}

/** How many jobs from `index` on differ only in id and payload: from 1 up to the size of one statement. */
function countAlike(jobs: readonly NewJob[], index: number): number {
  const first = jobs[index]
  if (first === undefined || !isPlain(first)) return 1
  let count = 1
  while (count < ALIKE_ROWS) {
    const job = jobs[index + count]
    if (job === undefined || !isPlain(job) || !isAlike(first, job)) break
    count += 1
  }
  return count
}

function isPlain(job: NewJob): boolean {
  return job.key === null && job.latest === null && job.tenant === null && job.options === null && job.after === null
}

function isAlike(one: NewJob, other: NewJob): boolean {
  return (
    one.type === other.type &&
    one.priority === other.priority &&
    one.delayMs === other.delayMs &&
    one.runAtMs === other.runAtMs &&
    one.attempts === other.attempts &&
    one.payloadVersion === other.payloadVersion
  )
}

/** An id that exists already is rare, so the individual retry finds out which one it was. */
function insertAlikeRows(connection: Connection, jobs: readonly NewJob[], nowMs: number): readonly Receipt[] {
  const [first] = jobs
  if (first === undefined) return []
  const shared = {
    type: first.type,
    priority: first.priority,
    due: dueOf(first, nowMs),
    attempts: first.attempts,
    version: first.payloadVersion,
    now: toIso(nowMs),
  }
  const rows: SqliteValue[] = []
  for (const job of jobs) rows.push(job.id, job.payload)
  const { changes } = connection.prepare(INSERT_ALIKE).run(shared, ...rows)
  if (Number(changes) !== jobs.length) throw new RetryIndividually('a job of this id exists')
  return jobs.map(({ id }) => ({ id, status: 'enqueued' }))
}

/** Stores one job in one statement, which may be a transaction of its own. Null, with nothing stored, if that is not enough. */
export function insertOnly(connection: Connection, jobs: readonly NewJob[], nowMs: number): readonly [Receipt] | null {
  const [job] = jobs
  if (job === undefined || jobs.length > 1 || !isPlain(job) || !insertPlain(connection, job, nowMs)) return null
  return [{ id: job.id, status: 'enqueued' }]
}

/** False if a job of this id exists. */
function insertPlain(connection: Connection, job: NewJob, nowMs: number): boolean {
  const now = toIso(nowMs)
  const { id, type, payload, payloadVersion, priority, attempts } = job
  const { changes } = connection
    .prepare(INSERT_PLAIN)
    .run(id, type, payload, payloadVersion, priority, dueOf(job, nowMs), attempts, now, now)
  return Number(changes) === 1
}

function insertJob(connection: Connection, job: NewJob, nowMs: number): Receipt {
  if (isPlain(job)) return { id: job.id, status: insertPlain(connection, job, nowMs) ? 'enqueued' : 'duplicate' }
  const known = findKnown(connection, job)
  if (known !== null) return { id: known, status: 'duplicate' }
  const place = job.latest === null ? PLAIN : takeLatestPlace(connection, job.type, job.latest, job.id, nowMs)
  if (place === null) return { id: job.id, status: 'stale' }
  const due = dueOf(job, nowMs)
  const heldBy = job.after === null ? 0 : linkPredecessors(connection, job.id, job.after)
  connection.prepare(INSERT_ONE).run({
    rowid: place.rowid,
    id: job.id,
    type: job.type,
    payload: job.payload,
    version: job.payloadVersion,
    priority: job.priority,
    due: place.due !== null && place.due < due ? place.due : due,
    attempts: job.attempts,
    now: toIso(nowMs),
    key: job.key,
    latestKey: job.latest?.key ?? null,
    latestSeq: place.seq,
    waitingFor: place.waitingFor + heldBy,
    tenant: job.tenant === null ? null : JSON.stringify(job.tenant),
    options: job.options === null ? null : JSON.stringify(job.options),
    predecessors: job.after === null ? null : JSON.stringify(job.after),
  })
  if (job.options?.tags !== undefined) addTags(connection, job)
  return { id: job.id, status: place.replaced ? 'replaced' : 'enqueued' }
}

function findKnown(connection: Connection, job: NewJob): string | null {
  const same = connection.prepare(FIND_ID).get({ id: job.id }) as { id: string } | undefined
  if (same !== undefined) return same.id
  if (job.key === null) return null
  return takeKey(connection, job.key)
}

/**
 * The live job that has the key, or null. Our own jobs give up their key when they finish. A row that another program
 * finished, or that is older than Millrace, loses it here. Inside a write transaction.
 */
export function takeKey(connection: Connection, key: string, forId?: string): string | null {
  const keyed = connection.prepare(FIND_BY_KEY).get({ key }) as { id: string; finished: 0 | 1 } | undefined
  if (keyed === undefined || keyed.id === forId) return null
  if (keyed.finished === 0) return keyed.id
  connection.prepare(RELEASE_KEY).run({ key })
  return null
}

function dueOf(job: NewJob, nowMs: number): string {
  return toIso(job.runAtMs ?? nowMs + job.delayMs)
}
