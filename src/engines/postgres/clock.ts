import type { StoreClock, StoreTime } from '../../engine/store-steps.ts'
import type { Database } from './database.ts'
import { DUE, ms, NOW } from './fragments.ts'
import type { Names } from './names.ts'

/** Not an election: the body of this record is the sum of all clock steps that were applied, in milliseconds. */
const CLOCK = `kind = 'clock' AND name = 'clock'`

/** What `StoreSteps` needs, for any statement that can bring it along. */
export const CLOCK_COLUMNS = ({ records }: Names): string =>
  `${ms(NOW)} AS now_ms, coalesce((SELECT body FROM ${records} WHERE ${CLOCK}), '0')::float8 AS followed_ms`

export interface ClockRow {
  readonly now_ms: number
  readonly followed_ms: number
}

export const READ_CLOCK = (names: Names): string => `SELECT ${CLOCK_COLUMNS(names)}`

export const NAME_CLOCK = ({ records }: Names): string => `
INSERT INTO ${records} (kind, name, revision, body, saved_at) VALUES ('clock', 'clock', '', '0', ${NOW}) ON CONFLICT DO NOTHING`

/** Returns no row if another process has applied the step. Holds its lock until the transaction ends. */
export const FOLLOW_CLOCK = ({ records }: Names): string => `
UPDATE ${records} SET body = ($2::bigint + $3::bigint)::text, saved_at = ${NOW}
WHERE ${CLOCK} AND body = ($3::bigint)::text RETURNING body`

const STEP = `$2::float8 * interval '1 millisecond'`

export const SHIFT_LEASES = ({ jobs }: Names): string => `
UPDATE ${jobs} SET lease_expires_at = lease_expires_at + ${STEP}, last_heartbeat_at = last_heartbeat_at + ${STEP},
  updated_at = updated_at + ${STEP}
WHERE status = 'processing' AND ${NOW} IS NOT NULL`

/** Due jobs stay due and retries keep their delay. Every other due time is a time of day and stays. */
export const SHIFT_DUE = ({ jobs }: Names): string => `
UPDATE ${jobs} SET run_at = CASE WHEN run_at > ${NOW} THEN run_at + ${STEP} ELSE run_at END,
  next_earliest_run_at = CASE WHEN next_earliest_run_at > ${NOW} THEN next_earliest_run_at + ${STEP} ELSE next_earliest_run_at END,
  updated_at = ${NOW}
WHERE status = 'queued' AND ${DUE} > ${NOW}
  AND (${DUE} <= ${NOW} - ${STEP} OR ${DUE} <= ${NOW} - 2 * ${STEP} AND attempt_count > 0)`

export const SHIFT_STARTS = ({ limits }: Names): string => `
UPDATE ${limits} SET started_at = ARRAY (
  SELECT start.at + ${STEP} FROM unnest(started_at) WITH ORDINALITY AS start (at, nth) ORDER BY start.nth)
WHERE cardinality(started_at) > 0 AND ${NOW} IS NOT NULL`

export const SHIFT_RECORDS = ({ records }: Names): string => `
UPDATE ${records} SET saved_at = saved_at + ${STEP}, expires_at = expires_at + ${STEP}
WHERE expires_at IS NOT NULL AND ${NOW} IS NOT NULL`

/** The server's clock, by which leases, rate limits and records that expire are judged. */
export function serverClock(database: Database): Omit<StoreClock, 'onStep'> {
  return {
    async read(): Promise<StoreTime> {
      const [row] = await database.rows<ClockRow>(READ_CLOCK)
      return { nowMs: row?.now_ms ?? 0, followedMs: row?.followed_ms ?? 0 }
    },
    shift: (stepMs, followedMs) =>
      database.transaction(async (queries) => {
        await queries.rows(NAME_CLOCK)
        if ((await queries.rows(FOLLOW_CLOCK, stepMs, followedMs)).length === 0) return false
        await queries.rows(SHIFT_LEASES, stepMs)
        await queries.rows(SHIFT_STARTS, stepMs)
        await queries.rows(SHIFT_RECORDS, stepMs)
        if (stepMs < 0) await queries.rows(SHIFT_DUE, stepMs)
        return true
      }),
  }
}
