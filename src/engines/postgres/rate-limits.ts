import type { SubscribedType } from '../../engine/engine.ts'
import { systemClock } from '../../time/clock.ts'
import { accept, type Claimed, columnsOf, lease, measured, type Taking, taken } from './claim.ts'
import type { Database } from './database.ts'
import { agedBy, jobColumns, ms, NOW, type Rank } from './fragments.ts'
import type { Names } from './names.ts'
import type { JobRow } from './rows.ts'
import { CLAIM_SLOTS, CLAIM_SLOTS_AGED, type LastRead, slotColumns } from './slots.ts'

/** In order of name, so that two processes that add the same types do not deadlock. */
export const NAME_LIMITS = ({ limits }: Names): string => `
INSERT INTO ${limits} (type) SELECT given FROM unnest($2::text[]) AS given WHERE ${NOW} IS NOT NULL ORDER BY given
ON CONFLICT DO NOTHING`

/** A window is divided into this many parts. Starts within one part are stored as one entry. */
const PARTS = 200

/** What a claim must not run beside another one of the same type. */
export function isLimited({ limit, slots }: SubscribedType): boolean {
  return limit !== undefined || slots !== undefined
}

/**
 * Claims jobs of types of which some are limited. $2 to $9 as in CLAIM_MANY, then for each lane its limit ($10 starts within $11
 * milliseconds; null without a limit), and the limited types ($12).
 *
 * It is one statement, so that the lock on a type's row ends with it even if its sender freezes or is cut off. Between two
 * statements of a transaction, a frozen worker would hold up all others. For the same reason it returns only ids: the
 * server commits after it has sent its answer, and payloads may not fit into the socket of a frozen worker.
 *
 * The recent starts are in the locked row, because a statement sees that row as it is now, not as it was when the statement
 * began. The time is read when all locks are held, so counting and recording are on the same side of every other claim. A
 * type whose row another claim has locked is left out; `locked` counts the others.
 */
export const CLAIM_LIMITED = (names: Names): string => claimLimitedBy(names)

/** The same with ageing, one rank in $13 milliseconds. */
export const CLAIM_LIMITED_AGED = (names: Names): string => claimLimitedBy(names, agedBy('$13'))

const claimLimitedBy = ({ jobs, limits }: Names, rank?: Rank): string => `
WITH locked AS MATERIALIZED (
  SELECT type, started_at, started FROM ${limits} WHERE type = ANY ($12::text[]) ORDER BY type FOR UPDATE SKIP LOCKED),
lanes AS MATERIALIZED (
  SELECT * FROM unnest($2::text[], $3::int[], $4::float8[], $5::int[], $6::timestamptz[], $10::float8[], $11::float8[])
    AS lane (type, bound, lease_ms, at_priority, since, starts_max, per_ms)),
${judgedSql()},
open AS MATERIALIZED (
  SELECT lane.type, least(lane.bound, coalesce(judged.starts_left, lane.bound))::int AS bound, lane.lease_ms, lane.at_priority,
    lane.since
  FROM lanes AS lane LEFT JOIN judged ON judged.type = lane.type
  WHERE lane.starts_max IS NULL OR judged.starts_left > 0),
${taken(jobs, 'open AS lane', rank)},
${recordedSql({ jobs, limits })}
SELECT ${ANSWER}
FROM moment`

/** How many starts each of the `locked` types has left, at the `moment` at which all locks are held. */
export function judgedSql(): string {
  return `moment AS MATERIALIZED (
  SELECT coalesce($1::timestamptz, clock_timestamp()) AS now, types FROM (SELECT count(*)::int AS types FROM locked) AS counted),
-- A start a window or more in the future is from before the clock was set back: it counts as a start of now, for one
-- window at most. A nearer one may have been moved by its claim while this one was in flight.
recent AS MATERIALIZED (
  SELECT lane.type, CASE WHEN future.is_far THEN moment.now ELSE start.at END AS at, start.starts, future.is_far AS is_future
  FROM moment CROSS JOIN lanes AS lane JOIN locked ON locked.type = lane.type
  CROSS JOIN LATERAL unnest(locked.started_at, locked.started) AS start (at, starts)
  CROSS JOIN LATERAL (SELECT start.at > moment.now + lane.per_ms * interval '1 millisecond' AS is_far) AS future
  WHERE start.at > moment.now - lane.per_ms * interval '1 millisecond'),
judged AS MATERIALIZED (
  SELECT lane.type, lane.starts_max - coalesce(used.starts, 0) AS starts_left, coalesce(used.is_future, false) AS is_future,
    ${ms(`used.oldest - moment.now`)} + lane.per_ms AS free_ms
  FROM moment CROSS JOIN lanes AS lane JOIN locked ON locked.type = lane.type LEFT JOIN (
    SELECT type, sum(starts) AS starts, min(at) AS oldest, bool_or(is_future) AS is_future FROM recent GROUP BY type) AS used
    ON used.type = lane.type)`
}

/** Leases what was `taken`, and records the starts of each type. */
export function recordedSql({ jobs, limits }: Pick<Names, 'jobs' | 'limits'>): string {
  return `leased AS (
  ${lease(jobs, 'job.id, job.type, job.attempt_count <= greatest(1, job.max_attempts) AS is_start')}),
begun AS (
  SELECT type, (SELECT count(*) FROM leased WHERE leased.type = judged.type AND is_start)::int AS starts FROM judged),
kept AS (
  SELECT type, array_agg(at ORDER BY at) AS started_at, array_agg(starts ORDER BY at) AS started FROM (
    SELECT given.type, max(given.at) AS at, sum(given.starts)::int AS starts
    FROM (SELECT type, at, starts FROM recent UNION ALL SELECT begun.type, moment.now, begun.starts FROM begun, moment) AS given
    JOIN lanes AS lane ON lane.type = given.type WHERE given.starts > 0
    GROUP BY given.type, floor(date_part('epoch', given.at) * 1000 * ${PARTS} / lane.per_ms)) AS part
  GROUP BY type),
recorded AS (
  UPDATE ${limits} AS known SET started_at = kept.started_at, started = kept.started, claims = claims + 1
  FROM kept JOIN begun ON begun.type = kept.type JOIN judged ON judged.type = kept.type
  WHERE known.type = kept.type AND (begun.starts > 0 OR judged.is_future))`
}

export const ANSWER = `(SELECT array_agg(id::text) FROM leased) AS ids, moment.types AS locked, ${ms('moment.now')} AS now_ms,
  (SELECT min(free_ms) FROM judged WHERE starts_left <= 0) AS free_ms`

/** The jobs of a claim. */
export const READ_CLAIMED = ({ jobs }: Names): string => `
SELECT ${jobColumns('job')}, ${NOW} AS now FROM ${jobs} AS job
WHERE job.id::text = ANY ($2::text[]) AND job.lease_token = $3 AND job.status = 'processing'`

/**
 * A claim records its starts before its answer is sent, and its handlers start when the answer has arrived. Starts recorded
 * at $3 or later are moved to now, so that the window counts from the handlers' starts, but by no more than the claim took
 * ($4, ms): the server's clock may have been set meanwhile. It reads the row's own columns, which Postgres reads again
 * after waiting for the row.
 */
export const MOVE_STARTS = ({ limits }: Names): string => `
UPDATE ${limits} AS known SET started_at = ARRAY(
  SELECT CASE WHEN ${ms('start.at')} >= $3::float8 THEN greatest(start.at, least(coalesce($1::timestamptz, clock_timestamp()), start.at + $4::float8 * interval '1 millisecond'))
    ELSE start.at END
  FROM unnest(known.started_at) WITH ORDINALITY AS start (at, nth) ORDER BY start.nth)
WHERE known.type = ANY ($2::text[])`

interface LimitedRow extends LastRead {
  readonly ids: readonly string[] | null
  /** How many limited types were not locked by another claim. */
  readonly locked: number
  readonly free_ms: number | null
  /** When the claim was recorded, by the server's clock. */
  readonly now_ms: number
  /** When the next job that has a free slot falls due. */
  readonly next_ms?: number | null
}

/** How often a claim waits for another claim of its limited types. They are short and run one after the other. */
const LIMIT_TRIES = 8

const LIMIT_WAIT_MS = 5

/** A slot that another process frees is announced; this often a claim looks in case the notice was lost. */
const SLOT_LOOK_MS = 1_000

/** In how many milliseconds a job that is held back may start. */
function freeInMsOf({ free_ms, next_ms, now_ms }: LimitedRow, { limited }: TakingLimited): number | null {
  if (!limited.some(({ slots }) => slots !== undefined)) return free_ms
  const nextInMs = next_ms === null || next_ms === undefined ? SLOT_LOOK_MS : Math.max(1, next_ms - now_ms)
  return Math.min(free_ms ?? SLOT_LOOK_MS, nextInMs, SLOT_LOOK_MS)
}

/** A claim that finds nothing reads at most so many parts of the tenants and jobs of its types. */
const PARTS_READ_MAX = 10

/** Claims of one limited type run one after the other across all processes, so that starts and slots can be counted. */
export async function claimLimited(database: Database, taking: TakingLimited): Promise<Claimed> {
  const { limited, rounds } = taking
  const types = limited.map((type) => type.type)
  await moves.get(database)
  const beganMs = database.monotonicMs
  let [parts, isFromStart] = [0, !rounds.isOpen(types)]
  for (let tries = 1; ; ) {
    const row = await takeLimited(database, taking)
    const isAll = row?.locked === types.length
    if (isAll) rounds.advance(types, row)
    const freeInMs = row === undefined ? null : freeInMsOf(row, taking)
    if (row !== undefined && row.ids !== null) {
      const rows = await database.rows<JobRow>(READ_CLAIMED, row.ids, taking.token)
      const leases = await accept(database, rows, taking)
      if (leases.length > 0) moveStarts(database, types, { sinceMs: row.now_ms, beganMs })
      return { leases, freeInMs }
    }
    if (isAll) {
      parts += 1
      const isRead = !rounds.isOpen(types) && isFromStart
      if (isRead || parts === PARTS_READ_MAX) return { leases: [], freeInMs }
      isFromStart ||= !rounds.isOpen(types)
      continue
    }
    if (tries === LIMIT_TRIES) return { leases: [], freeInMs: LIMIT_WAIT_MS }
    // Or the row was removed.
    if (tries === 1) await nameLimits(database, limited)
    else await systemClock.sleep(LIMIT_WAIT_MS * Math.random())
    tries += 1
  }
}

/** Moves under way. A claim waits for those of its own engine: it would find their rows locked and leave the types out. */
const moves = new WeakMap<Database, Promise<void>>()

/**
 * Runs after this turn of the event loop, in which the handlers start. If it fails, the window counts from the claim, and
 * the next claim reports the fault.
 */
function moveStarts(
  database: Database,
  types: readonly string[],
  { sinceMs, beganMs }: { readonly sinceMs: number; readonly beganMs: number },
): void {
  const move = async (): Promise<void> => {
    await new Promise((resolve) => setImmediate(resolve))
    const tookMs = database.monotonicMs - beganMs
    await database.rows(MOVE_STARTS, types, sinceMs, tookMs).catch(() => {})
  }
  moves.set(
    database,
    Promise.all([moves.get(database), move()]).then(() => {}),
  )
}

/** Creates the rows that claims of limited types lock. Call before the first claim. */
export async function nameLimits(database: Database, types: readonly SubscribedType[]): Promise<void> {
  const limited = types.filter(isLimited).map((type) => type.type)
  if (limited.length > 0) await database.rows(NAME_LIMITS, limited)
}

interface TakingLimited extends Taking {
  readonly limited: readonly SubscribedType[]
}

async function takeLimited(
  database: Database,
  { lanes, limited, max, worker, token, cursors, ageingMs, rounds }: TakingLimited,
): Promise<LimitedRow | undefined> {
  const own = lanes.map((lane) => limited.find((type) => type.type === lane.type))
  const hasSlots = limited.some(({ slots }) => slots !== undefined)
  const statement = hasSlots
    ? ageingMs === null
      ? CLAIM_SLOTS
      : CLAIM_SLOTS_AGED
    : ageingMs === null
      ? CLAIM_LIMITED
      : CLAIM_LIMITED_AGED
  const [row] = await measured(cursors, lanes, (starts) =>
    database.rows<LimitedRow>(
      statement,
      ...columnsOf(lanes, starts),
      max,
      worker,
      token,
      own.map((type) => type?.limit?.max ?? null),
      own.map((type) => type?.limit?.perMs ?? null),
      limited.map((type) => type.type),
      ...(hasSlots ? slotColumns(lanes, own, rounds) : []),
      ...(ageingMs === null ? [] : [ageingMs]),
    ),
  )
  return row
}
