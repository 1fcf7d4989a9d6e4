import { randomUUID } from 'node:crypto'
import type { ClaimRequest, SubscribedType } from '../../engine/engine.ts'
import type { Lease } from '../../engine/outcome.ts'
import { CLAIM_MANY, CLAIM_MANY_ON } from './claim-many.ts'
import type { Cursor, Cursors } from './cursors.ts'
import type { Database, Queries } from './database.ts'
import {
  after,
  agedBy,
  CLAIMABLE,
  DUE,
  event,
  jobColumns,
  ms,
  NOW,
  type Rank,
  rowsFrom,
  UNLEASED,
} from './fragments.ts'
import type { Names } from './names.ts'
import { claimLimited, isLimited } from './rate-limits.ts'
import { byAgedUrgency, byUrgency, fromPlain, type JobRow, type PlainRow, toLease } from './rows.ts'
import type { Rounds } from './slots.ts'

/**
 * The columns for a claim of one type, which nearly every claim is. A usual value is left out, because the server writes
 * and the client parses every value as text. `fromPlain` in rows.ts fills it in.
 */
function plainColumns(job: string): string {
  return `${job}.id::text AS id, ${job}.payload::text AS payload, ${job}.ctid AS place, ${job}.priority,
  nullif(${job}.attempt_count, 1) AS attempt_count, nullif(${job}.max_attempts, 3) AS max_attempts,
  nullif(${job}.payload_version, 1) AS payload_version, ${ms(`${job}.created_at`)} AS created_ms,
  CASE WHEN ${job}.run_at <> ${job}.created_at THEN ${ms(`${job}.run_at`)} END AS run_ms, ${job}.arrival::float8 AS arrival,
  ${job}.idempotency_key, ${job}.latest_key, ${job}.tenant, ${job}.options, ${job}.after`
}

/**
 * Subqueries hide from the planner how many types there are. If it knew, it would plan the statement anew for every claim of
 * a few types, which takes longer than the claim.
 */
export const LANES = `unnest((SELECT $2::text[]), (SELECT $3::int[]), (SELECT $4::float8[]), (SELECT $5::int[]),
  (SELECT $6::timestamptz[])) AS lane (type, bound, lease_ms, at_priority, since)`

/** The first due jobs of one type and priority: one index seek, however many jobs are stored. */
export function probe(jobs: string, lane: string, columns: string, bound: string, until = NOW): string {
  return `SELECT ${columns} FROM ${jobs}
      WHERE type = ${lane}.type AND priority = ${lane}.priority AND ${CLAIMABLE} AND ${DUE} <= ${until} AND ${DUE} >= ${lane}.since
      ORDER BY ${DUE}, arrival LIMIT ${bound}`
}

/**
 * Claims the most urgent due jobs of one type, at most $5. It probes in order of priority until it has enough. Nearly
 * every claim is this one, so values that are the same for all rows are computed once, in subqueries, and the locked rows
 * are found again by ctid. A ctid belongs to one table, hence ONLY.
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
 * The CTEs that choose the rows to lease: the most urgent due jobs of `lanes`, at most $7, and of each type at most its
 * bound. `rank` is what a job's priority counts as. They first count, without a lock, how many of each type and priority to take, then lock exactly as many free
 * ones. So two claims never wait for each other, and none locks more than it takes.
 */
export function taken(jobs: string, lanes: string, rank: Rank = (priority) => priority): string {
  return `${places(lanes)},
wanted AS (
  SELECT type, priority, since, lease_ms, count(*) AS jobs FROM (
    SELECT * FROM (
      SELECT place.*, found.due, found.arrival,
        row_number() OVER (PARTITION BY place.type ORDER BY ${rank('place.priority', 'found.due')}, found.due, found.arrival) AS nth
      FROM places AS place CROSS JOIN LATERAL (
      ${probe(jobs, 'place', `${DUE} AS due, arrival`, 'place.bound')}) AS found) AS candidate
    WHERE nth <= bound ORDER BY ${rank('priority', 'due')}, due, arrival LIMIT $7) AS chosen
  GROUP BY type, priority, since, lease_ms),
${locked(jobs)}`
}

/** Every type and priority, and from when on to look there. */
export function places(lanes: string): string {
  return `places AS (
  SELECT lane.type, lane.bound, lane.lease_ms, rank.priority,
    CASE WHEN rank.priority = lane.at_priority THEN lane.since ELSE '-infinity' END AS since
  FROM ${lanes} CROSS JOIN generate_series(1, 10) AS rank (priority))`
}

/** As many of each place as `wanted` says. */
export function locked(jobs: string, name = 'taken'): string {
  return `${name} AS MATERIALIZED (
  SELECT picked.id, wanted.lease_ms FROM wanted CROSS JOIN LATERAL (
      ${probe(jobs, 'wanted', 'id', 'wanted.jobs')} FOR UPDATE SKIP LOCKED) AS picked)`
}

/** The attempt is counted with the start, so a crash counts too. */
export function lease(jobs: string, columns: string): string {
  return `UPDATE ${jobs} AS job SET status = 'processing', attempt_count = attempt_count + 1, locked_by = $8, lease_token = $9,
  lease_expires_at = ${after('taken.lease_ms')}, last_heartbeat_at = ${NOW}, started_at = ${NOW}, updated_at = ${NOW},
  run_at = ${DUE}, next_earliest_run_at = NULL
FROM taken WHERE job.id = taken.id
RETURNING ${columns}`
}

/** With ageing, one rank in $10 milliseconds. */
export const CLAIM_AGED = ({ jobs }: Names): string => `
WITH ${taken(jobs, LANES, agedBy('$10'))}
${lease(jobs, jobColumns('job'))}`

/** Another program may have put back a job that has used its attempts. It becomes a dead letter instead of starting again. */
export const DEAD_LETTER_EXHAUSTED = ({ jobs, events, eventIdType }: Names): string => `
WITH exhausted AS (
  UPDATE ${jobs} AS job SET status = 'failed', completed_at = ${NOW}, attempt_count = attempt_count - 1,
    fail_code = 'attempts_used', started_at = NULL,
    fail_reason = 'all ' || max_attempts || ' attempts were used before it was put back; replay it instead', ${UNLEASED}
  FROM ${rowsFrom('$2::text[]')} AS given (id) WHERE job.id::text = given.id AND job.lease_token = $3
  RETURNING job.id, job.attempt_count, job.fail_reason)
INSERT INTO ${events} (job_id, data)
SELECT id::text::${eventIdType}, ${event({ type: `'dead'`, attempt: 'attempt_count', worker: 'NULL' }, `jsonb_build_object('error', fail_reason)`)}
FROM exhausted`

type Bounds = Pick<ClaimRequest, 'max' | 'perType'>

interface Lane {
  readonly type: string
  readonly leaseMs: number
  /** How many of the type may be claimed now. */
  readonly bound: number
}

export interface Claimed {
  readonly leases: readonly Lease[]
  /** In how many milliseconds to look again for a job that a rate limit or a lack of slots holds back; null when none is. */
  readonly freeInMs: number | null
}

/** One token for the whole batch: with the job's id it is unique to this claim. It begins with the holder's name. */
export function newToken(worker: string): string {
  // Made of random bytes that Node keeps in store: asking the system for them at each claim would delay it.
  return `${worker} ${randomUUID()}`
}

/** Takes the most urgent due jobs of a consumer's types. */
export async function claimReady(database: Database, { types, bounds, ...claiming }: Claiming): Promise<Claimed> {
  const lanes = types.map((type) => laneOf(type, bounds)).filter((lane) => lane.bound > 0)
  if (lanes.length === 0) return { leases: [], freeInMs: null }
  const { resets } = claiming.cursors
  const taking = { ...claiming, lanes, max: bounds.max, nowMs: database.nowMs, resets }
  const limited = types.filter((type) => isLimited(type) && lanes.some((lane) => lane.type === type.type))
  if (limited.length > 0) return claimLimited(database, { ...taking, limited })
  return { leases: await take(claiming.line, taking), freeInMs: null }
}

interface Claimant {
  readonly worker: string
  readonly token: string
  readonly cursors: Cursors
  readonly rounds: Rounds
  /** Null: strict priority. */
  readonly ageingMs: number | null
}

interface Claiming extends Claimant {
  /** Where the consumer's claims follow each other. */
  readonly line: Queries
  readonly types: readonly SubscribedType[]
  readonly bounds: Bounds
}

function laneOf(type: SubscribedType, bounds: Bounds): Lane {
  const bound = Math.min(bounds.max, bounds.perType?.[type.type] ?? bounds.max)
  return { type: type.type, leaseMs: type.leaseMs, bound }
}

export interface Taking extends Claimant {
  /** Not later than the statement. */
  readonly nowMs: number
  readonly lanes: readonly Lane[]
  readonly max: number
  /** Of the cursors, before the claim. */
  readonly resets: number
}

async function take(queries: Queries, taking: Taking): Promise<readonly Lease[]> {
  const { lanes, max, worker, token, cursors, nowMs, ageingMs } = taking
  const [only, ...others] = lanes
  const rows = await measured(cursors, lanes, (starts) => {
    if (ageingMs !== null) {
      return queries.rows<JobRow>(CLAIM_AGED, ...columnsOf(lanes, starts), max, worker, token, ageingMs)
    }
    if (only !== undefined && others.length === 0) {
      const start = starts[0] ?? null
      return takeOne(queries, { ...only, bound: Math.min(max, only.bound) }, { worker, token, start, nowMs })
    }
    const claim = starts.every((start) => start === null) ? CLAIM_MANY : CLAIM_MANY_ON
    return queries.rows<JobRow>(claim, ...columnsOf(lanes, starts), max, worker, token)
  })
  return accept(queries, rows, taking)
}

export async function measured<Row>(
  cursors: Cursors,
  lanes: readonly Lane[],
  claim: (starts: readonly (Cursor | null)[]) => Promise<readonly Row[]>,
): Promise<readonly Row[]> {
  const starts = lanes.map((lane) => cursors.of(lane.type))
  const finished = cursors.measure(starts.some((start) => start !== null))
  const rows = await claim(starts)
  finished()
  return rows
}

/** The first five parameters of a claim of several types. */
export function columnsOf(lanes: readonly Lane[], starts: readonly (Cursor | null)[]): readonly unknown[] {
  return [
    lanes.map((lane) => lane.type),
    lanes.map((lane) => lane.bound),
    lanes.map((lane) => lane.leaseMs),
    starts.map((start) => start?.priority ?? 0),
    starts.map((start) => start?.since ?? '-infinity'),
  ]
}

export function accept(
  queries: Queries,
  rows: readonly JobRow[],
  { token, cursors, lanes, ageingMs, max, resets }: Taking,
): Promise<readonly Lease[]> {
  const ordered = rows.toSorted(
    ageingMs === null ? byUrgency : byAgedUrgency(new Map(lanes.map((lane) => [lane.type, lane.leaseMs])), ageingMs),
  )
  cursors.advance(ordered, { max, resets })
  return leaseUnlessExhausted(queries, ordered, token)
}

/** The expiry comes from the local clock, read before the statement is sent, so it is never too late. */
async function takeOne(
  queries: Queries,
  { type, bound, leaseMs }: Lane,
  {
    worker,
    token,
    start,
    nowMs,
  }: Pick<Taking, 'worker' | 'nowMs'> & { readonly token: string; readonly start: Cursor | null },
): Promise<readonly JobRow[]> {
  const expiresMs = nowMs + leaseMs
  const { priority = 0, since = '-infinity' } = start ?? {}
  const rows = await queries.lists<PlainRow>(CLAIM_ONE, type, priority, since, bound, worker, token, leaseMs)
  return rows.map((row) => fromPlain(row, type, expiresMs))
}

async function leaseUnlessExhausted(
  queries: Queries,
  rows: readonly JobRow[],
  token: string,
): Promise<readonly Lease[]> {
  const exhausted = rows.filter((row) => row.attempt_count > Math.max(1, row.max_attempts))
  if (exhausted.length === 0) return rows.map((row) => toLease(row, token))
  await queries.rows(
    DEAD_LETTER_EXHAUSTED,
    exhausted.map((row) => row.id),
    token,
  )
  return rows.filter((row) => !exhausted.includes(row)).map((row) => toLease(row, token))
}
