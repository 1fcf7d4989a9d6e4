import { type Clock, systemClock } from '../../src/time/clock.ts'
import { type AccessOptions, TableAccess } from './access.ts'
import type { Database, ServiceResult } from './database.ts'
import { type FinishDetails, type FinishedJob, finishJob } from './finish.ts'
import { keepLease, type LeaseRenewer } from './lease-renewer.ts'
import { claimJob, heartbeatJob, type LeasedJob } from './leases.ts'
import { type ColumnValues, insertJob, listDue, type QueueAge, queueAge } from './queue.ts'
import type { JobTable } from './shape.ts'

export interface InTable<Table extends string> {
  readonly table: Table
}

export interface AtAttempt {
  /** The `attempt` of the claim. Without it, a worker's earlier start could pass for its later one. */
  readonly attempt?: number
}

export interface KeepOptions<Table extends string> extends InTable<Table>, AtAttempt {
  /** As given to `claimJob`. Default: `DEFAULT_LEASE_SEC`. */
  readonly leaseSec?: number
}

/** The functions for workers. None of them throws; see ServiceResult. */
export interface JobTables<Table extends string = JobTable> {
  /** Claims a due job. `leaseSec` defaults to `DEFAULT_LEASE_SEC`. */
  claimJob(
    id: string,
    workerId: string,
    leaseSec: number | undefined,
    options: InTable<Table>,
  ): Promise<ServiceResult<LeasedJob>>
  heartbeatJob(
    id: string,
    workerId: string,
    leaseSec: number | undefined,
    options: InTable<Table> & AtAttempt,
  ): Promise<ServiceResult<LeasedJob>>
  finishJob(
    id: string,
    success: boolean,
    details: FinishDetails | undefined,
    options: InTable<Table> & AtAttempt & { readonly workerId: string },
  ): Promise<ServiceResult<FinishedJob>>
  /** Sends a heartbeat every `HEARTBEAT_SEC`, or every third of the lease if shorter, until stopped or refused. */
  keepLease(id: string, workerId: string, options: KeepOptions<Table>): LeaseRenewer
  /** Adds a row with the configured `max_attempts`. Pass your client as `within` to insert in your transaction. */
  insertJob(
    values: ColumnValues,
    options: InTable<Table> & { readonly within?: Database },
  ): Promise<ServiceResult<{ readonly id: string }>>
  listDue(options: InTable<Table> & { readonly limit?: number }): Promise<ServiceResult<string[]>>
  queueAge(options: InTable<Table>): Promise<ServiceResult<QueueAge>>
}

export interface JobTablesOptions<Table extends string = JobTable> extends AccessOptions<Table> {
  readonly clock?: Clock
}

const DUE_LIMIT = 100

/**
 * @example
 * const { claimJob, finishJob } = openJobTables(pool)
 * const claimed = await claimJob(id, 'worker-1', 300, { table: 'asr_jobs' })
 */
export function openJobTables<Table extends string = JobTable>(
  database: Database,
  options: JobTablesOptions<Table> = {},
): JobTables<Table> {
  const access = new TableAccess(database, options)
  const { settings } = access
  const clock = options.clock ?? systemClock
  // Callers without types may leave out the last argument.
  const tableOf = (given: Partial<InTable<Table>> | undefined): string => String(given?.table)
  const beat: JobTables<Table>['heartbeatJob'] = (id, workerId, leaseSec = settings.leaseSec, at) =>
    heartbeatJob(access, { table: tableOf(at), id, workerId, leaseSec, attempt: at?.attempt ?? null })
  return {
    claimJob: (id, workerId, leaseSec = settings.leaseSec, at) =>
      claimJob(access, { table: tableOf(at), id, workerId, leaseSec }),
    heartbeatJob: beat,
    finishJob: (id, success, details, at) =>
      finishJob(access, {
        table: tableOf(at),
        id,
        success,
        details: details ?? {},
        workerId: String(at?.workerId),
        attempt: at?.attempt ?? null,
      }),
    keepLease: (id, workerId, { leaseSec = settings.leaseSec, ...at }) =>
      keepLease({
        id,
        leaseSec,
        heartbeatSec: settings.heartbeatSec,
        clock,
        beat: () => beat(id, workerId, leaseSec, { ...at, table: at.table }),
      }),
    insertJob: (values, at) => insertJob(access, tableOf(at), values, at?.within ?? null),
    listDue: (at) => listDue(access, tableOf(at), at?.limit ?? DUE_LIMIT),
    queueAge: (at) => queueAge(access, tableOf(at)),
  }
}
