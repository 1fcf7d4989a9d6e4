import { OptionError } from '../../src/errors.ts'
import { type OptionNames, refuseUnknown } from '../../src/job/known-options.ts'
import { type Clock, systemClock } from '../../src/time/clock.ts'
import { type AccessOptions, TableAccess } from './access.ts'
import { type Database, refused, type ServiceResult } from './database.ts'
import { type FinishDetails, type FinishedJob, finishJob } from './finish.ts'
import { keepLease, type LeaseRenewer } from './lease-renewer.ts'
import { claimJob, heartbeatJob, type LeasedJob } from './leases.ts'
import { type ColumnValues, insertJob, listDue, type QueueAge, queueAge } from './queue.ts'
import type { JobTable } from './shape.ts'

/**
 * Whether a caller must prove that it holds the lease. `required`: `finishJob` takes the worker and the attempt of the claim,
 * heartbeats take the attempt. `optional`: they are checked if given. A finish by the id alone then ends whichever start
 * holds the lease, so a late worker can end the start of its successor.
 */
export type Fence = 'optional' | 'required'

/** False for several tables, and for a list that the compiler does not know. */
type IsOne<Table extends string> = string extends Table ? false : IsUnion<Table> extends true ? false : true
type IsUnion<Member, All = Member> = Member extends All ? ([All] extends [Member] ? false : true) : never

/** With one table its name may be left out. */
export type InTable<Table extends string> =
  IsOne<Table> extends true ? { readonly table?: Table } : { readonly table: Table }

export type AtAttempt<Fenced extends Fence> = Fenced extends 'required'
  ? {
      /** The `attempt` of the claim. */
      readonly attempt: number
    }
  : {
      /** The `attempt` of the claim. Without it, a worker's earlier start could pass for its later one. */
      readonly attempt?: number
    }

export type HeldBy<Fenced extends Fence> = AtAttempt<Fenced> &
  (Fenced extends 'required'
    ? { readonly workerId: string }
    : {
        /** As given to `claimJob`. Without it, a late worker can end the start of its successor. */
        readonly workerId?: string
      })

interface Keeping {
  /** As given to `claimJob`. Default: `DEFAULT_LEASE_SEC`. */
  readonly leaseSec?: number
}

/** A last argument, which may be left out if all of it may. */
type Last<Options> = Partial<Options> extends Options ? [options?: Options] : [options: Options]

/** The functions for workers. None of them throws; see ServiceResult. */
export interface JobTables<Table extends string = JobTable, Fenced extends Fence = 'optional'> {
  /** Claims a due job. `leaseSec` defaults to `DEFAULT_LEASE_SEC`. */
  claimJob(
    id: string,
    workerId: string,
    leaseSec: number | undefined,
    ...options: Last<InTable<Table>>
  ): Promise<ServiceResult<LeasedJob>>
  heartbeatJob(
    id: string,
    workerId: string,
    leaseSec: number | undefined,
    ...options: Last<InTable<Table> & AtAttempt<Fenced>>
  ): Promise<ServiceResult<LeasedJob>>
  finishJob(
    id: string,
    success: boolean,
    details?: FinishDetails,
    ...options: Last<InTable<Table> & HeldBy<Fenced>>
  ): Promise<ServiceResult<FinishedJob>>
  /** Sends a heartbeat every `HEARTBEAT_SEC`, or every third of the lease if shorter, until stopped or refused. */
  keepLease(id: string, workerId: string, ...options: Last<InTable<Table> & AtAttempt<Fenced> & Keeping>): LeaseRenewer
  /** Adds a row with the configured `max_attempts`. Pass your client as `within` to insert in your transaction. */
  insertJob(
    values: ColumnValues,
    ...options: Last<InTable<Table> & { readonly within?: Database }>
  ): Promise<ServiceResult<{ readonly id: string }>>
  listDue(...options: Last<InTable<Table> & { readonly limit?: number }>): Promise<ServiceResult<string[]>>
  queueAge(...options: Last<InTable<Table>>): Promise<ServiceResult<QueueAge>>
}

export interface JobTablesOptions<Table extends string = JobTable, Fenced extends Fence = 'optional'>
  extends AccessOptions<Table> {
  readonly clock?: Clock
  /** Default: `optional`. */
  readonly fence?: Fenced
}

const OPTION_NAMES: OptionNames<JobTablesOptions<string, Fence>> = {
  tables: true,
  schema: true,
  settings: true,
  nowMs: true,
  clock: true,
  fence: true,
}

/** Callers without types may leave out anything. */
interface Given extends Keeping {
  readonly table?: string
  readonly workerId?: string
  readonly attempt?: number
  readonly limit?: number
  readonly within?: Database
}

const DUE_LIMIT = 100

/**
 * @example
 * const { claimJob, heartbeatJob, finishJob } = openJobTables(pool, { tables: ['asr_jobs'] })
 * const claimed = await claimJob(id, 'worker-1', 300)
 */
export function openJobTables<const Table extends string = JobTable, const Fenced extends Fence = 'optional'>(
  database: Database,
  options?: JobTablesOptions<Table, Fenced>,
): JobTables<Table, Fenced>
export function openJobTables(database: Database, options: JobTablesOptions<string, Fence> = {}) {
  refuseUnknown(options, OPTION_NAMES, 'openJobTables')
  const access = new TableAccess(database, options)
  const { settings } = access
  const isFenced = isRequired(options.fence)
  const clock = options.clock ?? systemClock
  const [only = '', ...others] = access.place.tables
  const tableOf = (given: Given | undefined): string => given?.table ?? (others.length === 0 ? only : '')
  const beat = async (id: string, workerId: string, leaseSec = settings.leaseSec, at: Given = {}) => {
    if (isFenced && at.attempt === undefined) return unfenced('the attempt of the claim')
    return heartbeatJob(access, { table: tableOf(at), id, workerId, leaseSec, attempt: at.attempt ?? null })
  }
  return {
    claimJob: (id: string, workerId: string, leaseSec = settings.leaseSec, at?: Given) =>
      claimJob(access, { table: tableOf(at), id, workerId, leaseSec }),
    heartbeatJob: beat,
    finishJob: async (id: string, success: boolean, details: FinishDetails = {}, at: Given = {}) => {
      const { workerId = null, attempt = null } = at
      if (isFenced && (workerId === null || attempt === null)) return unfenced('workerId and the attempt of the claim')
      return finishJob(access, { table: tableOf(at), id, success, details, workerId, attempt })
    },
    keepLease: (id: string, workerId: string, at: Given = {}) => {
      const { leaseSec = settings.leaseSec } = at
      const { heartbeatSec } = settings
      return keepLease({ id, leaseSec, heartbeatSec, clock, beat: () => beat(id, workerId, leaseSec, at) })
    },
    insertJob: (values: ColumnValues, at?: Given) => insertJob(access, tableOf(at), values, at?.within ?? null),
    listDue: (at?: Given) => listDue(access, tableOf(at), at?.limit ?? DUE_LIMIT),
    queueAge: (at?: Given) => queueAge(access, tableOf(at)),
  }
}

function isRequired(fence: Fence = 'optional'): boolean {
  if (fence === 'required' || fence === 'optional') return fence === 'required'
  throw new OptionError(`'fence' is '${String(fence)}'; give 'required' or 'optional'`)
}

function unfenced(missing: string): ReturnType<typeof refused> {
  return refused('invalid_argument', `these tables were opened with fence: 'required'; give ${missing}`)
}
