import { COUNT_DEAD, COUNT_HELD_BACK, COUNT_READY } from '../../../src/engines/sqlite/counts.ts'
import type { SqliteDatabase } from '../../../src/engines/sqlite/database.ts'
import { OLDEST_DUE } from '../../../src/engines/sqlite/inspector.ts'
import { OptionError } from '../../../src/errors.ts'
import { refuseUnknown } from '../../../src/job/known-options.ts'
import { endedStats, type Stats, totalOf } from '../../../src/observe/stats/stats.ts'
import { emptyTally, type Tally } from '../../../src/observe/stats/window.ts'
import { type Clock, systemClock } from '../../../src/time/clock.ts'
import { fromIso, toIso } from '../../../src/time/iso.ts'
import { SyncStore } from './sync-store.ts'

export const COUNT_QUEUED = `
SELECT count(*) AS jobs FROM job_queue INDEXED BY idx_job_queue_dequeue WHERE status = 'queued'`

export const COUNT_IN_PROGRESS = `
SELECT count(*) AS jobs FROM job_queue INDEXED BY idx_job_queue_lease_expiry WHERE status = 'in_progress'`

const COMPLETED = `FROM job_queue WHERE status = 'completed' AND completed_at >= :since AND duration_ms`

/** From the index alone. The plus keeps SQLite from walking another index in the order of types. */
export const COMPLETED_SINCE = `
SELECT type, duration_ms AS durationMs, count(*) AS jobs ${COMPLETED} IS NOT NULL GROUP BY +type, +duration_ms`

/** Rows of other programs have no duration of their own. */
export const COMPLETED_BY_OTHERS = `
SELECT type, round((julianday(completed_at) - julianday(started_at)) * 86400000) AS durationMs, 1 AS jobs ${COMPLETED} IS NULL`

export const DEAD_SINCE = `
SELECT type, count(*) AS jobs FROM job_queue INDEXED BY idx_job_queue_dead
WHERE status = 'dead_letter' AND ended IS NULL AND completed_at >= :since GROUP BY +type`

/** Events go with their job, so each finds its own. */
export const FAILED_SINCE = `
SELECT type, name, count(*) AS jobs FROM job_events JOIN job_queue ON job_queue.id = job_events.job_id
WHERE at >= :since AND name IN ('failed', 'expired') GROUP BY +type, name`

/** Figures of the whole queue, over all processes. */
export interface QueueMetrics extends Stats {
  /** How long the oldest due job has been waiting; 0 when none waits. */
  readonly queueAgeMs: number
}

export interface MetricsOptions {
  readonly clock?: Clock
}

const HOUR_MS = 3_600_000

/**
 * The key figures of the queue, from the store alone, so that any process can read them: what is stored now, and how
 * attempts ended in the last `windowMs` (default: an hour). Everything is read in one transaction, so the figures are of
 * one moment. What retention or `removeOnComplete` has removed is not counted.
 *
 * On a file that `runMigrations` has made, the cost depends on what waits and what ended in the window, not on what is
 * stored.
 *
 * @example
 * for (const { severity, message } of checkAlerts(collectMetrics(db))) console.log(severity, message)
 */
export function collectMetrics(
  db: SqliteDatabase,
  windowMs: number = HOUR_MS,
  options: MetricsOptions = {},
): QueueMetrics {
  refuseUnknown(options, { clock: true }, 'collectMetrics')
  if (!(windowMs > 0 && Number.isFinite(windowMs))) {
    throw new OptionError(`'windowMs' is ${windowMs}; give milliseconds above 0`)
  }
  const store = new SyncStore(db, options.clock ?? systemClock)
  return store.read('metrics', () => {
    const ended = readEnded(store, windowMs)
    return {
      windowMs,
      ...readStored(store),
      ...endedStats(totalOf(ended.values()), windowMs),
      byType: Object.fromEntries([...ended].map(([type, tally]) => [type, endedStats(tally, windowMs)])),
    }
  })
}

interface TypeCount {
  readonly type: string
  readonly jobs: number
}

function readStored({ connection, clock }: SyncStore) {
  const nowMs = clock.nowMs()
  const now = toIso(nowMs)
  const count = (sql: string): number => (connection.prepare(sql).get() as { jobs: number }).jobs
  const sum = (sql: string): number =>
    (connection.prepare(sql).all({ now }) as unknown[] as TypeCount[]).reduce((total, { jobs }) => total + jobs, 0)
  const queueDepth = count(COUNT_QUEUED)
  const due = sum(COUNT_READY) + sum(COUNT_HELD_BACK)
  const dead = connection.prepare(COUNT_DEAD).all() as unknown[] as TypeCount[]
  const oldest = connection.prepare(OLDEST_DUE).get({ now }) as { scheduled_at: string } | undefined
  return {
    queueDepth,
    due,
    delayed: queueDepth - due,
    inProgressCount: count(COUNT_IN_PROGRESS),
    deadLetterCount: dead.reduce((total, { jobs }) => total + jobs, 0),
    deadByType: Object.fromEntries(dead.map(({ type, jobs }) => [type, jobs])),
    queueAgeMs: oldest === undefined ? 0 : Math.max(0, nowMs - fromIso(oldest.scheduled_at)),
  }
}

function readEnded({ connection, clock }: SyncStore, windowMs: number): ReadonlyMap<string, Tally> {
  const since = toIso(Math.max(0, clock.nowMs() - windowMs))
  const tallies = new Map<string, Tally>()
  const tallyOf = (type: string): Tally => {
    const tally = tallies.get(type) ?? emptyTally()
    tallies.set(type, tally)
    return tally
  }
  const read = <Row>(sql: string): Row[] => connection.prepare(sql).all({ since }) as Row[]
  type Completed = TypeCount & { readonly durationMs: number | null }
  for (const { type, durationMs, jobs } of [COMPLETED_SINCE, COMPLETED_BY_OTHERS].flatMap((sql) =>
    read<Completed>(sql),
  )) {
    const tally = tallyOf(type)
    tally.completed += jobs
    if (durationMs !== null) tally.durations.add(durationMs, jobs)
  }
  for (const { type, jobs } of read<TypeCount>(DEAD_SINCE)) tallyOf(type).dead += jobs
  for (const { type, name, jobs } of read<TypeCount & { name: 'failed' | 'expired' }>(FAILED_SINCE))
    tallyOf(type)[name] += jobs
  return tallies
}
