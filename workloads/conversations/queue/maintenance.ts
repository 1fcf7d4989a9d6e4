import type { Lease } from '../../../src/engine/outcome.ts'
import type { SqliteDatabase } from '../../../src/engines/sqlite/database.ts'
import { claimExpired } from '../../../src/engines/sqlite/expired.ts'
import { applyKeepLimits } from '../../../src/engines/sqlite/keep-limits.ts'
import { removeFinished } from '../../../src/engines/sqlite/retention.ts'
import { settleLeases } from '../../../src/engines/sqlite/settle.ts'
import { OptionError } from '../../../src/errors.ts'
import { Events } from '../../../src/events.ts'
import type { Backoff } from '../../../src/job/backoff.ts'
import type { Log } from '../../../src/job/definition.ts'
import { redact } from '../../../src/job/error-record.ts'
import { type OptionNames, refuseUnknown } from '../../../src/job/known-options.ts'
import { verdict } from '../../../src/keeper/reaper.ts'
import { attachLog, silentLog } from '../../../src/observe/log.ts'
import { type Clock, systemClock } from '../../../src/time/clock.ts'
import { toIso } from '../../../src/time/iso.ts'
import { newWorkerId } from '../../../src/worker/worker-id.ts'
import { BACKOFF } from './backoff.ts'
import { SyncStore } from './sync-store.ts'

export const RETENTION_DAYS = 7
export const STALE_LEASE_MS = 300_000
/** How often the pipeline calls them. A keeper, which every worker has, does both by itself. */
export const CLEANUP_EVERY_MS = 86_400_000
export const RELEASE_EVERY_MS = 30_000

const DAY_MS = 86_400_000
/** Rows of one transaction. Longer ones delay other processes. */
const BATCH = 500

const FIND_OLD = `
SELECT rowid, id, completed_at AS completedAt FROM job_queue
WHERE rowid > :from AND status = 'completed' AND completed_at < :before ORDER BY rowid LIMIT :max`

const COUNT_STALE = `
SELECT count(*) AS stale FROM job_queue INDEXED BY idx_job_queue_lease_expiry
WHERE status = 'in_progress' AND lease_until < :before`

export interface MaintenanceOptions {
  readonly clock?: Clock
  readonly log?: Log
  readonly random?: () => number
}

const MAINTENANCE_NAMES: OptionNames<MaintenanceOptions> = { clock: true, log: true, random: true }

/** Removes jobs that completed longer ago than this many days. Returns how many. */
export function cleanupCompletedJobs(
  db: SqliteDatabase,
  retentionDays: number = RETENTION_DAYS,
  options: MaintenanceOptions = {},
): number {
  refuseUnknown(options, MAINTENANCE_NAMES, 'cleanupCompletedJobs')
  if (!(retentionDays >= 0 && retentionDays <= 36_500)) {
    throw new OptionError(`'retentionDays' is ${retentionDays}; give days from 0 to 36500`)
  }
  const { clock = systemClock, log = silentLog } = options
  const store = new SyncStore(db, clock)
  const before = toIso(clock.nowMs() - retentionDays * DAY_MS)
  let count = 0
  for (let from: number | undefined = 0; from !== undefined; ) {
    const found = store.read('cleanup', () => findOld(store, from ?? 0, before))
    count += found.length === 0 ? 0 : store.write('cleanup', () => removeFinished(store.connection, found).length)
    from = found.length < BATCH ? undefined : found.at(-1)?.rowid
  }
  log.info('Completed jobs cleaned up', { count, retention_days: retentionDays })
  return count
}

interface OldJob {
  readonly rowid: number
  readonly id: string
  readonly completedAt: string
}

function findOld({ connection }: SyncStore, from: number, before: string): OldJob[] {
  return connection.prepare(FIND_OLD).all({ from, before, max: BATCH }) as unknown[] as OldJob[]
}

/**
 * Takes jobs from holders whose lease ran out longer ago than `timeoutMs`, and retries them or makes dead letters of
 * them, like any failed attempt. Returns how many. The time counts from the end of the lease, so 0 is what a keeper does.
 */
export function releaseStaleLeases(
  db: SqliteDatabase,
  timeoutMs: number = STALE_LEASE_MS,
  options: MaintenanceOptions = {},
): number {
  refuseUnknown(options, MAINTENANCE_NAMES, 'releaseStaleLeases')
  if (!(timeoutMs >= 0 && Number.isFinite(timeoutMs))) {
    throw new OptionError(`'timeoutMs' is ${timeoutMs}; give milliseconds of 0 or more`)
  }
  const { clock = systemClock, log = silentLog, random = Math.random } = options
  const events = new Events()
  attachLog(events, log)
  const parts = { worker: newWorkerId(), random, events, backoff: BACKOFF }
  const count = recoverExpired(new SyncStore(db, clock), parts, timeoutMs)
  if (count > 0) log.warn('Stale leases released', { count, timeout_ms: timeoutMs })
  return count
}

interface RecoveryParts {
  /** Under whose name expired leases are taken over. */
  readonly worker: string
  readonly random: () => number
  readonly events: Events
  readonly backoff: Backoff
}

/** Settles jobs whose lease ran out longer ago than `staleMs` as failed attempts. Returns how many. */
export function recoverExpired(store: SyncStore, parts: RecoveryParts, staleMs = 0): number {
  const startedAtMs = store.clock.monotonicMs()
  const reaped = { retried: 0, dead: 0 }
  for (let batch: readonly Settled[] | null = null; batch === null || batch.length > 0; ) {
    batch = store.write('recover', () => recoverBatch(store, parts, staleMs))
    for (const { lease, outcome } of batch) {
      parts.events.emit('lease.reaped', { job: lease.job, attempt: lease.attempt, worker: parts.worker, outcome })
      reaped[outcome.kind === 'dead' ? 'dead' : 'retried'] += 1
    }
  }
  const durationMs = Math.round(store.clock.monotonicMs() - startedAtMs)
  parts.events.emit('reaper.pass', { ...reaped, durationMs })
  return reaped.retried + reaped.dead
}

interface Settled {
  readonly lease: Lease
  readonly outcome: ReturnType<typeof verdict>
}

/** Inside a write transaction. */
function recoverBatch(
  store: SyncStore,
  { worker, random, backoff }: RecoveryParts,
  staleMs: number,
): readonly Settled[] {
  const { connection, clock } = store
  const nowMs = clock.nowMs()
  const { stale } = connection.prepare(COUNT_STALE).get({ before: toIso(nowMs - staleMs) }) as { stale: number }
  if (stale === 0) return []
  // The longest overdue come first: these are the stale ones.
  const leases = claimExpired(connection, { types: 'every', worker }, Math.min(stale, BATCH), nowMs)
  const parts = { definitions: new Map(), random, redactor: redact, backoff }
  const settled = leases.map((lease) => ({ lease, outcome: verdict(parts, lease) }))
  const lost = settleLeases({ connection, worker, nowMs }, settled, true)
  applyKeepLimits(store, settled, lost)
  return settled
}
