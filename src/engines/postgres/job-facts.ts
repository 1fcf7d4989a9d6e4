/** What the doctor is told about the jobs in Postgres. Only the deep check walks all live rows. */

import { ok, plural, warning } from '../../doctor/findings.ts'
import {
  judgeConsistency,
  judgeOverdue,
  judgeStuck,
  judgeUnclaimable,
  judgeWorkers,
  OVERDUE_MS,
  UNWORKED_MS,
} from '../../doctor/jobs.ts'
import { judgeSchedules } from '../../doctor/upkeep.ts'
import type { Finding } from '../../engine/engine.ts'
import { READ_CLOCK } from './clock.ts'
import type { Queries } from './database.ts'
import { SILENCE_MS } from './expired.ts'
import { DUE, ms, NOW } from './fragments.ts'
import type { Names } from './names.ts'
import { listRecords } from './records.ts'

/** $2: how long recovery may take, $3: how long a row without a lease may be silent. */
const COUNT_STUCK = ({ jobs }: Names): string => `
SELECT count(*) FILTER (WHERE type IS NOT NULL)::int AS jobs, count(*) FILTER (WHERE type IS NULL)::int AS untyped,
  ${ms(`min(ended_at) FILTER (WHERE type IS NOT NULL)`)} AS oldest_ms, ${ms(NOW)} AS now_ms
FROM (SELECT type, coalesce(lease_expires_at,
    coalesce(last_heartbeat_at, updated_at, created_at) + $3::float8 * interval '1 millisecond') AS ended_at
  FROM ${jobs} WHERE status = 'processing') AS running
WHERE ended_at <= ${NOW} - $2::float8 * interval '1 millisecond'`

interface Stuck {
  readonly jobs: number
  readonly untyped: number
  readonly oldest_ms: number | null
  readonly now_ms: number
}

export async function checkStuck(queries: Queries, recoveryMaxMs: number): Promise<readonly Finding[]> {
  const [stuck] = await queries.rows<Stuck>(COUNT_STUCK, recoveryMaxMs, SILENCE_MS)
  if (stuck === undefined) return []
  const { jobs, untyped, oldest_ms: oldestMs, now_ms: nowMs } = stuck
  const expired = oldestMs === null ? [] : [{ jobs, type: null, oldestMs: nowMs - oldestMs, since: 'expired' as const }]
  const foreign = judgeUntyped(untyped)
  return expired.length === 0 && foreign.length > 0 ? foreign : [...judgeStuck(expired, recoveryMaxMs), ...foreign]
}

function judgeUntyped(rows: number): readonly Finding[] {
  if (rows === 0) return []
  return [
    warning(
      'stuck jobs',
      `${plural(rows, 'row')} of yours in 'processing' without a type: the engine leaves them alone`,
      `Watch them with 'millrace reap --tables jobs', or give them a type.`,
    ),
  ]
}

/** $2: for how long, $3: how many of the newest rows are searched for a sign of a worker. */
const COUNT_OVERDUE = ({ jobs }: Names): string => `
WITH overdue AS (
  SELECT type, count(*)::int AS jobs, min(${DUE}) AS oldest FROM ${jobs}
  WHERE status = 'queued' AND NOT blocked AND waiting_for = 0 AND type IS NOT NULL
    AND ${DUE} <= ${NOW} - $2::float8 * interval '1 millisecond' GROUP BY type),
newest AS MATERIALIZED (SELECT type, attempt_count, started_at, updated_at FROM ${jobs} ORDER BY id DESC LIMIT $3),
signs AS (
  SELECT type, ${NOW} AS at FROM ${jobs} WHERE status = 'processing' AND lease_expires_at > ${NOW}
  UNION ALL SELECT type, coalesce(started_at, updated_at) FROM newest WHERE attempt_count > 0)
SELECT type, jobs, ${ms('oldest')} AS oldest_ms, ${ms(NOW)} AS now_ms,
  (SELECT ${ms('max(at)')} FROM signs WHERE signs.type = overdue.type) AS sign_ms
FROM overdue ORDER BY type`

interface Overdue {
  readonly type: string
  readonly jobs: number
  readonly oldest_ms: number
  readonly sign_ms: number | null
  readonly now_ms: number
}

/** How many of the newest rows are searched for a sign of a worker. */
const ROWS_MAX = 10_000

export async function checkOverdue(queries: Queries): Promise<readonly Finding[]> {
  const overdue = await queries.rows<Overdue>(COUNT_OVERDUE, OVERDUE_MS, ROWS_MAX)
  return judgeOverdue(
    overdue.map(({ type, jobs, oldest_ms: oldestMs, now_ms: nowMs }) => ({
      ...{ type, jobs, counted: 'overdue', running: null },
      oldestMs: nowMs - oldestMs,
    })),
  )
}

export async function checkWorkers(queries: Queries): Promise<readonly Finding[]> {
  const waiting = await queries.rows<Overdue>(COUNT_OVERDUE, UNWORKED_MS, ROWS_MAX)
  return judgeWorkers(
    waiting
      .filter(({ sign_ms: signMs, now_ms: nowMs }) => signMs === null || signMs <= nowMs - UNWORKED_MS)
      .map(({ type, jobs, sign_ms: lastSignMs }) => ({ type, jobs, lastSignMs })),
  )
}

/** Rows that another program made unclaimable. The index of the claim cannot help: they are not in it, or nowhere near. */
const COUNT_UNCLAIMABLE = ({ jobs }: Names): string => `
SELECT count(*) FILTER (WHERE priority NOT BETWEEN 1 AND 10)::int AS priorities,
  count(*) FILTER (WHERE blocked AND NOT EXISTS (SELECT 1 FROM ${jobs} AS other WHERE other.type = job.type
    AND other.latest_key = job.latest_key AND other.status = 'processing'))::int AS blocked, ${NOW} AS now
FROM ${jobs} AS job WHERE status = 'queued' AND (priority NOT BETWEEN 1 AND 10 OR blocked)`

export async function checkUnclaimable(queries: Queries): Promise<readonly Finding[]> {
  const [found] = await queries.rows<{ priorities: number; blocked: number }>(COUNT_UNCLAIMABLE)
  if (found === undefined) return []
  const unclaimable = [
    { jobs: found.priorities, why: 'the priority is outside of 1 to 10', advice: 'UPDATE their priority.' },
    {
      jobs: found.blocked,
      why: 'blocked although no job of the same latest key runs',
      advice: 'UPDATE them to blocked = false.',
    },
  ]
  return judgeUnclaimable(unclaimable.filter(({ jobs }) => jobs > 0))
}

/** The deep look: it walks every live row. */
const COUNT_INCONSISTENT = ({ jobs, edges }: Names): string => `
SELECT count(*) FILTER (WHERE status = 'queued' AND waiting_for <> (
    SELECT count(*) FROM ${edges} AS edge WHERE edge.job_id = job.id::text AND edge.held))::int AS waiting,
  count(*) FILTER (WHERE status NOT IN ('queued', 'processing', 'completed', 'failed'))::int AS words,
  count(*) FILTER (WHERE attempt_count < 0 OR attempt_count > greatest(1, max_attempts))::int AS attempts, ${NOW} AS now
FROM ${jobs} AS job WHERE type IS NOT NULL AND status <> 'completed'`

export async function checkConsistency(queries: Queries): Promise<readonly Finding[]> {
  const [found] = await queries.rows<{ waiting: number; words: number; attempts: number }>(COUNT_INCONSISTENT)
  if (found === undefined) return []
  const findings = judgeConsistency([
    {
      jobs: found.waiting,
      what: 'with a count of predecessors that is not on record',
      advice: 'Cancel them and enqueue them again.',
    },
    {
      jobs: found.words,
      what: 'with a status that Millrace does not know, which it leaves alone',
      advice: `If they are to run, UPDATE their status to 'queued'.`,
    },
    {
      jobs: found.attempts,
      what: 'with attempts below 0 or beyond their limit',
      advice: 'UPDATE their attempt_count, or let them become dead letters when claimed.',
    },
  ])
  return findings.length > 0 ? findings : [ok('consistency', 'every job that is not completed was read and is valid')]
}

export async function checkSchedules(queries: Queries): Promise<readonly Finding[]> {
  const [clock] = await queries.rows<{ now_ms: number }>(READ_CLOCK)
  return [judgeSchedules(await listRecords(queries, 'schedule'), clock?.now_ms ?? 0)]
}
