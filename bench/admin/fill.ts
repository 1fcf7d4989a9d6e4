/** A store with millions of jobs in every condition, over twenty types, spread over the last day, written as a foreign program would. */
import { DatabaseSync } from 'node:sqlite'
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

const FILL_SQLITE = `
WITH RECURSIVE numbers(n) AS (SELECT :first UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < :end),
  rows(n, at) AS (SELECT n, strftime('%Y-%m-%dT%H:%M:%fZ', unixepoch() - 86400 + n * 80000 / :jobs, 'unixepoch') FROM numbers)
INSERT INTO job_queue (id, type, status, priority, attempts, max_retries, payload, created_at, updated_at, scheduled_at,
  started_at, completed_at, duration_ms, error_record)
SELECT printf('01J%023d', n), 'type-' || (n % ${TYPES}), ${STATE_SQLITE}, 1 + n % 10, iif(${FINISHED}, 1, 0), 3, ${PAYLOAD}, at, at, at,
  iif(${FINISHED}, at, NULL), iif(${FINISHED}, at, NULL), 12, iif(n % 100 >= 95, ${ERROR}, NULL)
FROM rows`

/** $1 jobs. */
const FILL_POSTGRES = `
INSERT INTO jobs (id, type, status, priority, attempt_count, max_attempts, payload, created_at, run_at, started_at,
  completed_at, duration_ms, error_record)
SELECT '01J' || lpad(n::text, 23, '0'), 'type-' || (n % ${TYPES}), ${STATE_POSTGRES}, 1 + n % 10,
  CASE WHEN ${FINISHED} THEN 1 ELSE 0 END, 3, (${PAYLOAD})::json, at, at, CASE WHEN ${FINISHED} THEN at END,
  CASE WHEN ${FINISHED} THEN at END, 12, CASE WHEN n % 100 >= 95 THEN (${ERROR})::json END
FROM (SELECT n, now() - interval '1 day' + n * (80000.0 / $1) * interval '1 second' AS at FROM generate_series(0, $1::int - 1) AS n) AS rows`

export function fillSqlite(file: string, jobs: number): void {
  const db = new DatabaseSync(file, { timeout: 10_000 })
  db.exec('PRAGMA synchronous = off; PRAGMA cache_size = -262144')
  const fill = db.prepare(FILL_SQLITE)
  for (let first = 0; first < jobs; first += CHUNK) {
    fill.run({ jobs, first, end: Math.min(first + CHUNK, jobs) })
    db.exec('PRAGMA wal_checkpoint(truncate)')
  }
  db.close()
}

export function fillPostgres(url: string, jobs: number): Promise<void> {
  return withClient(url, async (client) => {
    await client.query(FILL_POSTGRES, [jobs])
    await client.query('VACUUM ANALYZE jobs')
  })
}
