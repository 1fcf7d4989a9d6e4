/** A store with millions of jobs in every condition, over twenty types, spread over the last day, written as a foreign program would. */
import { DatabaseSync } from 'node:sqlite'
import { encodeTime } from '../../src/job/ulid.ts'
import { withClient } from '../servers/postgres.ts'

export const TYPES = 20
/** Rows of one transaction, all of which the log holds at once. */
const CHUNK = 1_000_000

/** Of a hundred jobs, eighty are completed, fifteen wait and five are dead letters of seven causes. */
const STATE_SQLITE = `CASE WHEN n % 100 < 80 THEN 'completed' WHEN n % 100 < 95 THEN 'queued' ELSE 'dead_letter' END`
const STATE_POSTGRES = `CASE WHEN n % 100 < 80 THEN 'completed' WHEN n % 100 < 95 THEN 'queued' ELSE 'failed' END`
const FINISHED = `(n % 100 < 80 OR n % 100 >= 95)`
const ERROR = `'{"name":"Error","code":null,"message":"no answer from host ' || (n % 7) || '","stack":null}'`
const PAYLOAD = `'{"n":' || n || ',"text":"${'x'.repeat(180)}"}'`

const DIGITS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** A ULID of the time and the number of a job, in SQL of both stores. */
function ulidSql(ms: string, numbered: string): string {
  const digits = Array.from(
    { length: 10 },
    (_, place) => `substr('${DIGITS}', ((${ms} >> ${45 - place * 5}) & 31)::int + 1, 1)`,
  )
  return `${digits.join(' || ')} || ${numbered}`
}

/** When the first job was made, and how many there are: the ids follow from these. */
export interface Filling {
  readonly startMs: number
  readonly jobs: number
}

const SPREAD_MS = 80_000_000

/** Spread over the last day. */
export function filling(jobs: number): Filling {
  return { startMs: Date.now() - 86_400_000, jobs }
}

export function filledId(n: number, { startMs, jobs }: Filling): string {
  return encodeTime(startMs + Math.floor((n * SPREAD_MS) / jobs)) + String(n).padStart(16, '0')
}

/** One in a hundred thousand jobs is of a tenant of its own, one in ten of a large one; one in twenty is tagged. */
const TENANT = `CASE WHEN n % 100000 = 5 THEN '{"orgId":"rare"}' WHEN n % 10 = 1 THEN '{"orgId":"acme"}' END`
const OPTIONS = `CASE WHEN n % 20 = 3 THEN '{"tags":["import-' || (n / 10000) || '","all"]}' END`
const KEY = `CASE WHEN n % 50 = 7 THEN 'order-' || (n % 1000000) END`

const FILL_SQLITE = `
WITH RECURSIVE numbers(n) AS (SELECT CAST(:first AS INTEGER) UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < :end),
  rows(n, ms, at) AS (SELECT n, ms, strftime('%Y-%m-%dT%H:%M:%fZ', ms / 1000.0, 'unixepoch') FROM (SELECT n, CAST(:startMs AS INTEGER) + n * ${SPREAD_MS} / CAST(:jobs AS INTEGER) AS ms FROM numbers))
INSERT INTO job_queue (id, type, status, priority, attempts, max_retries, payload, created_at, updated_at, scheduled_at,
  started_at, completed_at, duration_ms, error_record, error, tenant, options, released_key)
SELECT ${ulidSql('ms', `printf('%016d', n)`).replaceAll('::int', '')}, 'type-' || (n % ${TYPES}), ${STATE_SQLITE}, 1 + n % 10, iif(${FINISHED}, 1, 0), 3, ${PAYLOAD}, at, at, at,
  iif(${FINISHED}, at, NULL), iif(${FINISHED}, at, NULL), 12, iif(n % 100 >= 95, ${ERROR}, NULL),
  iif(n % 100 >= 95, 'no answer from host ' || (n % 7), NULL), ${TENANT}, ${OPTIONS}, iif(${FINISHED}, ${KEY}, NULL)
FROM rows`

const TAG_SQLITE = `INSERT INTO job_tags SELECT tags.value, job_queue.id FROM job_queue, json_each(options, '$.tags') AS tags WHERE options IS NOT NULL`

/** $1 jobs from $2 on. */
const FILL_POSTGRES = `
INSERT INTO jobs (id, type, status, priority, attempt_count, max_attempts, payload, created_at, run_at, started_at,
  completed_at, duration_ms, error_record, fail_reason, tenant, options, idempotency_key)
SELECT ${ulidSql('ms', `lpad(n::text, 16, '0')`)}, 'type-' || (n % ${TYPES}), ${STATE_POSTGRES}, 1 + n % 10,
  CASE WHEN ${FINISHED} THEN 1 ELSE 0 END, 3, (${PAYLOAD})::json, at, at, CASE WHEN ${FINISHED} THEN at END,
  CASE WHEN ${FINISHED} THEN at END, 12, CASE WHEN n % 100 >= 95 THEN (${ERROR})::json END,
  CASE WHEN n % 100 >= 95 THEN 'no answer from host ' || (n % 7) END, (${TENANT})::json, (${OPTIONS})::json, CASE WHEN ${FINISHED} THEN ${KEY} END
FROM (SELECT n, ms, to_timestamp(ms / 1000.0) AS at FROM (
  SELECT n, $2::bigint + n::bigint * ${SPREAD_MS} / $1::int AS ms FROM generate_series(0, $1::int - 1) AS n) AS numbers) AS rows`

/** Answers with what the store has: jobs of an earlier filling stay. */
export function fillSqlite(file: string, given: Filling): Filling {
  const db = new DatabaseSync(file, { timeout: 10_000 })
  const first = db.prepare('SELECT created_at FROM job_queue ORDER BY id LIMIT 1').get()
  if (first !== undefined) {
    db.close()
    return { ...given, startMs: Date.parse(String(first.created_at)) }
  }
  const { startMs, jobs } = given
  db.exec('PRAGMA synchronous = off; PRAGMA cache_size = -262144')
  const fill = db.prepare(FILL_SQLITE)
  for (let first = 0; first < jobs; first += CHUNK) {
    fill.run({ jobs, startMs, first, end: Math.min(first + CHUNK, jobs) })
    db.exec('PRAGMA wal_checkpoint(truncate)')
  }
  db.exec(TAG_SQLITE)
  // All is on the disk before anybody is measured: the system would write gigabytes meanwhile.
  db.exec('PRAGMA synchronous = full; PRAGMA wal_checkpoint(truncate)')
  db.close()
  return given
}

/** Answers with what the store has: jobs of an earlier filling stay. */
export function fillPostgres(url: string, given: Filling): Promise<Filling> {
  return withClient(url, async (client) => {
    const { rows } = await client.query('SELECT created_at FROM jobs ORDER BY id::text LIMIT 1')
    if (rows[0] !== undefined) return { ...given, startMs: rows[0].created_at.getTime() }
    await client.query(FILL_POSTGRES, [given.jobs, given.startMs])
    await client.query('VACUUM ANALYZE jobs, millrace_tags')
    return given
  })
}
