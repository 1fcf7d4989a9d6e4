/**
 * The statements that bring a job into the queue and out of it; settle-statements.ts has what follows. Values are
 * parameters, and the first one is always the time: null where the server's clock decides.
 */
import { literal, type Names } from './names.ts'

/** Stored times have milliseconds, so that what a caller reads is what the row holds. */
export const NOW = `coalesce($1::timestamptz, date_trunc('milliseconds', statement_timestamp()))`

/** When a job is due. Written as in the index, or the index would not be used. */
export const DUE = `greatest(run_at, next_earliest_run_at)`
const CLAIMABLE = `status = 'queued' AND NOT blocked AND waiting_for = 0`
export const LIVE = `status IN ('queued', 'processing')`

/** Milliseconds since the epoch as a number that JavaScript takes as it is. */
export function ms(expression: string): string {
  return `round(date_part('epoch', ${expression}) * 1000)`
}

export function after(delayMs: string): string {
  return `${NOW} + ${delayMs} * interval '1 millisecond'`
}

/** ISO-8601 in UTC with milliseconds, as document E wants it in events. */
export const NOW_ISO = `to_char(${NOW} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

/**
 * No token, no effect: a late holder must not touch a job that has a new one, nor one whose lease ran out (I3). The id is
 * the way to the row: `IS TRUE` keeps the index by status and lease out of it, which is full of ended leases.
 */
export function held(job: string, given: string): string {
  return `${job}.id::text = ${given}.id AND ${owned(job, given)}
    AND (${job}.status = 'processing' AND ${job}.lease_expires_at > ${NOW}) IS TRUE`
}

/**
 * A token begins with its holder: who changes `locked_by` by hand, or by document E's functions, need not know of tokens
 * to fence out whoever held the job.
 */
export function owned(job: string, given: string): string {
  return `${job}.lease_token = ${given}.token AND starts_with(${job}.lease_token, ${job}.locked_by || ' ')`
}

/** Ends a lease. Every statement that takes a job from its holder contains it. */
export function unleased(now: string): string {
  return `locked_by = NULL, lease_expires_at = NULL, lease_token = NULL, updated_at = ${now}`
}
export const UNLEASED: string = unleased(NOW)

/**
 * Rows of array parameters, whose number the planner is not told. Where it plans for each execution anew (behind a pooler, or
 * the first five of a prepared statement) it would take three hundred for so many that it reads the whole table, and
 * compares each row with each of them: 90 ms instead of 6 with thirty thousand jobs.
 */
export function given(...arrays: readonly string[]): string {
  return `unnest(${arrays.map((array) => `(SELECT ${array})`).join(', ')})`
}

/**
 * The order in which rows of jobs are locked: first those in flight, by their ids as JavaScript sorts them, because that is
 * how a settle locks them; then those that wait, which the triggers of that settle come to last.
 */
export function lockOrder(job: string): string {
  return `${job}.status <> 'processing', ${job}.id::text COLLATE "C"`
}

/** What a worker needs of a job; `JobRow` in rows.ts has the same names. */
export function jobColumns(job: string): string {
  return `${job}.id::text AS id, ${job}.type, ${job}.payload::text AS payload, ${job}.payload_version, ${job}.priority,
  ${job}.attempt_count, ${job}.max_attempts, ${ms(`${job}.created_at`)} AS created_ms,
  ${ms(`greatest(${job}.run_at, ${job}.next_earliest_run_at)`)} AS run_ms, ${job}.arrival::float8 AS arrival,
  ${job}.idempotency_key, ${job}.latest_key, ${job}.tenant, ${job}.options, ${job}.after,
  ${ms(`${job}.lease_expires_at`)} AS expires_ms, ${job}.ctid::text AS place`
}

/**
 * The same of a job whose type is known, for the claim that nearly every claim is: what has its usual value is left out,
 * because each value costs the server its text and the client its reading. `fromPlain` in rows.ts puts it back.
 */
function plainColumns(job: string): string {
  return `${job}.id::text AS id, ${job}.payload::text AS payload, ${job}.ctid AS place, ${job}.priority,
  nullif(${job}.attempt_count, 1) AS attempt_count, nullif(${job}.max_attempts, 3) AS max_attempts,
  nullif(${job}.payload_version, 1) AS payload_version, ${ms(`${job}.created_at`)} AS created_ms,
  CASE WHEN ${job}.run_at <> ${job}.created_at THEN ${ms(`${job}.run_at`)} END AS run_ms, ${job}.arrival::float8 AS arrival,
  ${job}.idempotency_key, ${job}.latest_key, ${job}.tenant, ${job}.options, ${job}.after`
}

/** One line of a job's history, in the form of document E. */
export function event(
  names: { readonly type: string; readonly attempt: string; readonly worker: string },
  details: string,
): string {
  return `jsonb_build_object('type', ${names.type}, 'table', 'jobs', 'at', ${NOW_ISO}, 'attempt', ${names.attempt},
    'worker', ${names.worker}, 'details', ${details})`
}

// Enqueue ------------------------------------------------------------------------------------------------------------

const GIVEN_JOBS = `unnest($2::text[], $3::text[], $4::text[], $5::int[], $6::int[], $7::int[], $8::float8[],
    $9::timestamptz[], $10::text[], $11::text[], $12::text[])
  WITH ORDINALITY AS given (id, type, payload, version, priority, attempts, delay_ms, run_at, key, tenant, options, nth)`

const JOB_COLUMNS = `id, type, payload, payload_version, priority, max_attempts, run_at, next_earliest_run_at,
  created_at, updated_at, idempotency_key, tenant, options`

function jobValues({ idType, payloadType }: Names): string {
  return `id::${idType}, type, payload::${payloadType}, version, priority, attempts, due, CASE WHEN due > ${NOW} THEN due END,
  ${NOW}, ${NOW}, key, tenant::json, options::json`
}

/** Any number of jobs. Those whose id exists or whose key is live are left out; the rest comes back. */
export const ENQUEUE = (names: Names): string => `
INSERT INTO ${names.jobs} (${JOB_COLUMNS})
SELECT ${jobValues(names)}
FROM (SELECT given.*, coalesce(given.run_at, ${after('delay_ms')}) AS due FROM ${GIVEN_JOBS}) AS given
ORDER BY nth
ON CONFLICT DO NOTHING
RETURNING id::text AS id`

/**
 * The same for jobs of which several have a key. An insert waits for whoever is inserting the same key, so they are
 * stored in the order of their keys, and two batches never wait for each other; their places in the queue ($13, or the next
 * ones) are given out in their own order.
 */
export const ENQUEUE_KEYED = (names: Names): string => `
INSERT INTO ${names.jobs} (${JOB_COLUMNS}, arrival)
SELECT ${jobValues(names)}, arrival
FROM (
  SELECT given.*, coalesce(given.run_at, ${after('delay_ms')}) AS due,
    coalesce(($13::bigint[])[given.nth], nextval(${literal(names.arrivals)})) AS arrival
  FROM (SELECT * FROM ${GIVEN_JOBS} ORDER BY nth) AS given) AS placed
ORDER BY key, nth
ON CONFLICT DO NOTHING
RETURNING id::text AS id`

/** Which job is in the way of each: the one with its id, else the live one with its key. */
export const FIND_KNOWN = ({ jobs }: Names): string => `
SELECT coalesce(
    (SELECT id::text FROM ${jobs} WHERE id::text = given.id),
    (SELECT id::text FROM ${jobs} WHERE idempotency_key = given.key AND ${LIVE})) AS id,
  ${NOW} AS now
FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS given (id, key, nth) ORDER BY nth`

/**
 * Only a table that was there before Millrace can have an index that lets no two rows have one key, whatever became of
 * them. Then a finished row gives up its key, and remembers it for a replay.
 */
export const RELEASE_KEYS = ({ jobs }: Names): string => `
UPDATE ${jobs} SET idempotency_key = NULL,
  options = ((CASE WHEN json_typeof(options::json) = 'object' THEN options::jsonb ELSE '{}' END)
    || jsonb_build_object('releasedKey', idempotency_key))::json
WHERE idempotency_key = ANY ($2::text[]) AND status IN ('completed', 'failed') AND ${NOW} IS NOT NULL`

/** The next number of a latest key, or the given one if it is above all before it; no row comes back when it is stale. */
export const TAKE_LATEST_SEQ = ({ latest }: Names): string => `
INSERT INTO ${latest} AS known (type, latest_key, seq) SELECT $2::text, $3::text, coalesce($4::bigint, 1) WHERE ${NOW} IS NOT NULL
ON CONFLICT (type, latest_key) DO UPDATE SET seq = coalesce($4::bigint, greatest(known.seq, 0) + 1), idle_since = NULL
WHERE $4::bigint IS NULL OR $4::bigint > known.seq
RETURNING seq::float8 AS seq`

/** The lock makes a claim or a settle of the same job come before or after, never in between. */
export const FIND_LATEST = ({ jobs }: Names): string => `
SELECT id::text AS id, status, attempt_count, ${DUE} AS due, arrival::text AS arrival, blocked, ${NOW} AS now
FROM ${jobs} WHERE type = $2 AND latest_key = $3 AND ${LIVE} ORDER BY arrival FOR UPDATE`

/** One job with a latest key, in the place that the job it replaces has left. */
export const ENQUEUE_LATEST = (names: Names): string => `
INSERT INTO ${names.jobs} (${JOB_COLUMNS}, latest_key, latest_seq, blocked, arrival)
SELECT ${jobValues(names)}, $13, $14::bigint, $15::boolean, coalesce($17::bigint, nextval(${literal(names.arrivals)}))
FROM (SELECT given.*, least(coalesce(given.run_at, ${after('delay_ms')}), $16::timestamptz) AS due FROM ${GIVEN_JOBS}) AS given
ON CONFLICT DO NOTHING
RETURNING id::text AS id`

export const SUPERSEDE_WAITING = ({ jobs, events, eventIdType }: Names): string => `
WITH ended AS (
  UPDATE ${jobs} SET status = 'failed', ended = 'superseded', completed_at = ${NOW}, blocked = false, ${UNLEASED}
  WHERE id::text = $2 AND status = 'queued' RETURNING id, attempt_count)
INSERT INTO ${events} (job_id, data)
SELECT id::text::${eventIdType}, ${event({ type: `'superseded'`, attempt: 'attempt_count', worker: 'NULL' }, `jsonb_build_object('by', $3::text)`)}
FROM ended`

// Claim --------------------------------------------------------------------------------------------------------------

const LANES = `unnest($2::text[], $3::int[], $4::float8[], $5::int[], $6::timestamptz[])
  AS lane (type, bound, lease_ms, at_priority, since)`

/** The first due jobs of one type and priority: one seek on the index, whatever else the table holds. */
function probe(jobs: string, lane: string, columns: string, bound: string): string {
  return `SELECT ${columns} FROM ${jobs}
      WHERE type = ${lane}.type AND priority = ${lane}.priority AND ${CLAIMABLE} AND ${DUE} <= ${NOW} AND ${DUE} >= ${lane}.since
      ORDER BY ${DUE}, arrival LIMIT ${bound}`
}

/**
 * The most urgent due jobs of one type, at most $5: the probes are made in order of priority, until there are enough.
 * Nearly every claim is this one, so what is the same for all rows is worked out once, in subqueries, and the rows that it
 * has locked are found again by their place. That is one of this very table: hence ONLY.
 */
export const CLAIM_ONE = ({ jobs }: Names): string => `
UPDATE ONLY ${jobs} AS job SET status = 'processing', attempt_count = attempt_count + 1, locked_by = $6, lease_token = $7,
  lease_expires_at = (SELECT ${after('$8::float8')}), last_heartbeat_at = (SELECT ${NOW}), started_at = (SELECT ${NOW}),
  updated_at = (SELECT ${NOW}), run_at = ${DUE}, next_earliest_run_at = NULL
WHERE job.ctid = ANY (ARRAY(
  SELECT picked.ctid FROM (
    SELECT $2::text AS type, rank AS priority, CASE WHEN rank = $3::int THEN $4::timestamptz ELSE '-infinity' END AS since
    FROM generate_series(1, 10) AS rank) AS place CROSS JOIN LATERAL (
      ${probe(`ONLY ${jobs}`, 'place', 'ctid', '$5')} FOR UPDATE SKIP LOCKED) AS picked LIMIT $5))
RETURNING ${plainColumns('job')}`

/**
 * CTEs up to the rows that are leased, of `lanes`: the most urgent due jobs, at most $7 and of each type at most its bound.
 * First it is counted, without a lock, how many of each type and priority are to be taken; then exactly as many are
 * locked, whichever are free, so that two claims never wait for each other and none locks more than it takes.
 */
export function taken(jobs: string, lanes: string): string {
  return `places AS (
  SELECT lane.type, lane.bound, lane.lease_ms, rank.priority,
    CASE WHEN rank.priority = lane.at_priority THEN lane.since ELSE '-infinity' END AS since
  FROM ${lanes} CROSS JOIN generate_series(1, 10) AS rank (priority)),
wanted AS (
  SELECT type, priority, since, lease_ms, count(*) AS jobs FROM (
    SELECT * FROM (
      SELECT place.*, found.due, found.arrival,
        row_number() OVER (PARTITION BY place.type ORDER BY place.priority, found.due, found.arrival) AS nth
      FROM places AS place CROSS JOIN LATERAL (
      ${probe(jobs, 'place', `${DUE} AS due, arrival`, 'place.bound')}) AS found) AS candidate
    WHERE nth <= bound ORDER BY priority, due, arrival LIMIT $7) AS chosen
  GROUP BY type, priority, since, lease_ms),
taken AS MATERIALIZED (
  SELECT picked.id, wanted.lease_ms FROM wanted CROSS JOIN LATERAL (
      ${probe(jobs, 'wanted', 'id', 'wanted.jobs')} FOR UPDATE SKIP LOCKED) AS picked)`
}

/** Counting happens where the start happens (I2). */
export function lease(jobs: string, columns: string): string {
  return `UPDATE ${jobs} AS job SET status = 'processing', attempt_count = attempt_count + 1, locked_by = $8, lease_token = $9,
  lease_expires_at = ${after('taken.lease_ms')}, last_heartbeat_at = ${NOW}, started_at = ${NOW}, updated_at = ${NOW},
  run_at = ${DUE}, next_earliest_run_at = NULL
FROM taken WHERE job.id = taken.id
RETURNING ${columns}`
}

export const CLAIM = ({ jobs }: Names): string => `
WITH ${taken(jobs, LANES)}
${lease(jobs, jobColumns('job'))}`

/** When the next job of these types falls due; null when none waits. */
export const NEXT_DUE = ({ jobs }: Names): string => `
SELECT ${ms('min(found.due)')} AS next_ms, ${ms(NOW)} AS now_ms
FROM unnest($2::text[], $3::int[], $4::timestamptz[]) AS lane (type, at_priority, since)
CROSS JOIN generate_series(1, 10) AS rank (priority) CROSS JOIN LATERAL (
  SELECT ${DUE} AS due FROM ${jobs} WHERE type = lane.type AND priority = rank.priority AND ${CLAIMABLE}
    AND ${DUE} >= CASE WHEN rank.priority = lane.at_priority THEN lane.since ELSE '-infinity' END
  ORDER BY ${DUE}, arrival LIMIT 1) AS found`

/** Another program may have put back a job whose attempts are used up. It is not started once more (I5). */
export const BURY_EXHAUSTED = ({ jobs, events, eventIdType }: Names): string => `
WITH buried AS (
  UPDATE ${jobs} AS job SET status = 'failed', completed_at = ${NOW}, attempt_count = attempt_count - 1,
    fail_code = 'attempts_used', started_at = NULL,
    fail_reason = 'all ' || max_attempts || ' attempts were used before it was put back; replay it instead', ${UNLEASED}
  FROM ${given('$2::text[]')} AS given (id) WHERE job.id::text = given.id AND job.lease_token = $3
  RETURNING job.id, job.attempt_count, job.fail_reason)
INSERT INTO ${events} (job_id, data)
SELECT id::text::${eventIdType}, ${event({ type: `'dead'`, attempt: 'attempt_count', worker: 'NULL' }, `jsonb_build_object('error', fail_reason)`)}
FROM buried`

/** Rows that another program marked as processing and gave no lease have run out after $6 milliseconds of silence (X173). */
function expired(noLease: boolean): string {
  return noLease
    ? `lease_expires_at IS NULL AND coalesce(last_heartbeat_at, updated_at, created_at) <= ${NOW} - $6 * interval '1 millisecond'`
    : `lease_expires_at <= ${NOW} AND $6::float8 IS NOT NULL`
}

function claimExpired({ jobs, events, eventIdType }: Names, noLease: boolean): string {
  const worker = 'previous_owner'
  return `
WITH taken AS MATERIALIZED (
  SELECT id, locked_by, started_at FROM ${jobs}
  WHERE status = 'processing' AND type IS NOT NULL AND ${expired(noLease)} AND ($3::text[] IS NULL OR type = ANY ($3::text[]))
  ORDER BY lease_expires_at LIMIT $2 FOR UPDATE SKIP LOCKED),
leased AS (
  UPDATE ${jobs} AS job SET locked_by = $4, lease_token = $5, lease_expires_at = ${after('$7::float8')}, updated_at = ${NOW}
  FROM taken WHERE job.id = taken.id
  RETURNING ${jobColumns('job')}, taken.locked_by AS ${worker}, taken.started_at),
noted AS (
  INSERT INTO ${events} (job_id, data)
  SELECT id::text::${eventIdType}, ${event({ type: `'expired'`, attempt: 'attempt_count', worker }, `jsonb_build_object('startedAtMs', ${ms('started_at')})`)}
  FROM leased)
SELECT * FROM leased`
}

/** The start was counted when it was made: the reaper's lease counts nothing. */
export const CLAIM_EXPIRED = (names: Names): string => claimExpired(names, false)
export const CLAIM_SILENT = (names: Names): string => claimExpired(names, true)

export const NEXT_EXPIRY = ({ jobs }: Names): string => `
SELECT ${ms('min(lease_expires_at)')} AS next_ms, ${ms(NOW)} AS now_ms FROM ${jobs}
WHERE status = 'processing' AND type IS NOT NULL AND ($2::text[] IS NULL OR type = ANY ($2::text[]))`
