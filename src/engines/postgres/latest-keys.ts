import type { Receipt } from '../../engine/engine.ts'
import type { NewJob } from '../../job/job.ts'
import type { Queries } from './database.ts'
import { columnsOf, findKnown, JOB_COLUMNS, jobValues, NEW_JOBS } from './enqueue.ts'
import { after, DUE, event, LIVE, NOW, rowsFrom, UNLEASED } from './fragments.ts'
import { literal, type Names } from './names.ts'
import type { ViewRow } from './rows.ts'

/** A condition on `known`: a job of the key waits, runs, or may be replayed. Each half has its own index. */
const isUsed = ({ jobs }: Names): string => `(
  EXISTS (SELECT 1 FROM ${jobs} AS job WHERE job.type = known.type AND job.latest_key = known.latest_key
    AND job.latest_key IS NOT NULL AND job.status IN ('queued', 'processing'))
  OR EXISTS (SELECT 1 FROM ${jobs} AS job WHERE job.type = known.type AND job.latest_key = known.latest_key
    AND job.latest_key IS NOT NULL AND job.status = 'failed' AND coalesce(job.ended, 'discarded') = 'discarded'))`

/**
 * Looks at the next latest keys after one. Marks idle keys, forgets those that were idle long enough, and returns the last
 * key it looked at. It never waits: a key that an enqueue has locked is left for the next pass.
 */
export const FORGET_IDLE_LATEST = (names: Names): string => `
WITH walked AS MATERIALIZED (
  SELECT type, latest_key, seq, idle_since, ${isUsed(names)} AS used FROM ${names.latest} AS known
  WHERE (type, latest_key) > ($2::text, $3::text) ORDER BY type, latest_key LIMIT $4),
due AS MATERIALIZED (
  SELECT known.type, known.latest_key, walked.used, known.idle_since IS NOT NULL AS marked
  FROM ${names.latest} AS known JOIN walked ON walked.type = known.type AND walked.latest_key = known.latest_key
  WHERE known.seq = walked.seq AND (walked.used = (known.idle_since IS NOT NULL)
    OR NOT walked.used AND known.idle_since <= ${NOW} - make_interval(secs => $5::float8 / 1000))
  FOR UPDATE OF known SKIP LOCKED),
forgotten AS (
  DELETE FROM ${names.latest} AS known USING due
  WHERE known.type = due.type AND known.latest_key = due.latest_key AND due.marked AND NOT due.used),
marked AS (
  UPDATE ${names.latest} AS known SET idle_since = CASE WHEN due.used THEN NULL ELSE ${NOW} END FROM due
  WHERE known.type = due.type AND known.latest_key = due.latest_key AND due.marked = due.used)
SELECT type, latest_key, count(*) OVER ()::int AS looked FROM walked ORDER BY type DESC, latest_key DESC LIMIT 1`

/** The lock puts a replay and an enqueue of a newer version in sequence. */
export const FIND_LATEST_SEQ = ({ latest }: Names): string =>
  `SELECT seq::float8 AS seq, ${NOW} AS now FROM ${latest} WHERE type = $2 AND latest_key = $3 FOR UPDATE`

/** Takes the next number of a latest key, or the given one if it is the highest. Returns no row for a stale number. */
export const TAKE_LATEST_SEQ = ({ latest }: Names): string => `
INSERT INTO ${latest} AS known (type, latest_key, seq) SELECT $2::text, $3::text, coalesce($4::bigint, 1) WHERE ${NOW} IS NOT NULL
ON CONFLICT (type, latest_key) DO UPDATE SET seq = coalesce($4::bigint, greatest(known.seq, 0) + 1), idle_since = NULL
WHERE $4::bigint IS NULL OR $4::bigint > known.seq
RETURNING seq::float8 AS seq`

/** The lock keeps a claim or a settle of the same job before or after, never in between. */
export const FIND_LATEST = ({ jobs }: Names): string => `
SELECT id::text AS id, status, attempt_count, ${DUE} AS due, arrival::text AS arrival, blocked, ${NOW} AS now
FROM ${jobs} WHERE type = $2 AND latest_key = $3 AND ${LIVE} ORDER BY arrival FOR UPDATE`

/** Stores a job with a latest key in the place of the job it replaces. */
export const ENQUEUE_LATEST = (names: Names): string => `
INSERT INTO ${names.jobs} (${JOB_COLUMNS}, latest_key, latest_seq, blocked, arrival)
SELECT ${jobValues(names)}, $13, $14::bigint, $15::boolean, coalesce($17::bigint, nextval(${literal(names.arrivals)}))
FROM (SELECT given.*, least(coalesce(given.run_at, ${after('delay_ms')}), $16::timestamptz) AS due FROM ${NEW_JOBS}) AS given
ON CONFLICT DO NOTHING
RETURNING id::text AS id`

export const SUPERSEDE_WAITING = ({ jobs, events, eventIdType }: Names): string => `
WITH ended AS (
  UPDATE ${jobs} SET status = 'failed', ended = 'superseded', completed_at = ${NOW}, blocked = false, ${UNLEASED}
  WHERE id::text = $2 AND status = 'queued' RETURNING id, attempt_count)
INSERT INTO ${events} (job_id, data)
SELECT id::text::${eventIdType}, ${event({ type: `'superseded'`, attempt: 'attempt_count', worker: 'NULL' }, `jsonb_build_object('by', $3::text)`)}
FROM ended`

/** A new key gets a row below every number. */
export const LOCK_LATEST = ({ latest }: Names): string => `
INSERT INTO ${latest} AS known (type, latest_key, seq)
SELECT DISTINCT type, latest_key, ${NEVER_SEEN} FROM ${rowsFrom('$2::text[]', '$3::text[]')} AS wanted (type, latest_key)
WHERE ${NOW} IS NOT NULL ORDER BY type, latest_key
ON CONFLICT (type, latest_key) DO UPDATE SET seq = known.seq`

const NEVER_SEEN = '(-9007199254740991)::bigint'

interface LatestRow {
  readonly id: string
  readonly status: string
  readonly due: Date
  readonly arrival: string | null
}

/** A waiting older job ends superseded and leaves its place. A running one is waited for. */
export async function insertLatest(
  queries: Queries,
  job: NewJob,
  latest: NonNullable<NewJob['latest']>,
  arrival: string | null,
): Promise<Receipt> {
  const [known] = await findKnown(queries, [job])
  if (known !== null && known !== undefined) return { id: known, status: 'duplicate' }
  const [taken] = await queries.rows<{ seq: number }>(TAKE_LATEST_SEQ, job.type, latest.key, latest.seq)
  if (taken === undefined) return { id: job.id, status: 'stale' }
  const others = await queries.rows<LatestRow>(FIND_LATEST, job.type, latest.key)
  const running = others.some((other) => other.status === 'processing')
  const waiting = others.filter((other) => other.status === 'queued')
  for (const other of waiting) await queries.rows(SUPERSEDE_WAITING, other.id, job.id)
  const [place] = waiting
  const rows = await queries.rows<{ id: string }>(
    ENQUEUE_LATEST,
    ...columnsOf([job]),
    latest.key,
    taken.seq,
    running,
    place?.due ?? null,
    place?.arrival ?? arrival,
  )
  // Another call took the key meanwhile: repeat, so that the job above is superseded only if this one is stored.
  if (rows.length === 0) throw Object.assign(new Error('the key was taken meanwhile'), { code: '40001' })
  return { id: job.id, status: waiting.length > 0 ? 'replaced' : 'enqueued' }
}

/** Whether no newer version has been stored: an older one must never run after it. */
export async function isLatest(queries: Queries, row: ViewRow): Promise<boolean> {
  if (row.latest_key === null) return true
  const [highest] = await queries.rows<{ seq: number }>(FIND_LATEST_SEQ, row.type, row.latest_key)
  return highest === undefined || (row.latest_seq ?? 0) >= highest.seq
}
