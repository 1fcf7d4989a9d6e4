import { resolve } from 'node:path'
import type { Capabilities } from '../../engine/capabilities.ts'
import type {
  Consumer,
  Controls,
  Counts,
  DeadLetters,
  DiagnoseOptions,
  Engine,
  Finding,
  Inspector,
  Receipt,
  Subscription,
  Transaction,
} from '../../engine/engine.ts'
import type { JobLogs } from '../../engine/job-logs.ts'
import type { EngineSettings } from '../../engine/open.ts'
import type { Outbox } from '../../engine/outbox.ts'
import type { Records } from '../../engine/records.ts'
import type { Retention } from '../../engine/retention.ts'
import { ClosedError } from '../../errors.ts'
import type { NewJob } from '../../job/job.ts'
import { SqliteConsumer } from './consumer.ts'
import { SqliteCore } from './core.ts'
import { countJobs } from './counts.ts'
import {
  Connection,
  configure,
  fileOf,
  forbidSchemaChanges,
  openFile,
  type SqliteDatabase,
  type Synchronous,
} from './database.ts'
import { createDeadLetters } from './dead-letters.ts'
import { insertJobs, insertOnly } from './enqueue.ts'
import { toEngineError } from './faults.ts'
import { assertLocal, readMounts } from './file-system.ts'
import { foldLog } from './fold-log.ts'
import { createControls, createInspector } from './inspector.ts'
import { createLogs } from './job-logs.ts'
import { applyMigrations, assertCurrent, needsMigration } from './migrate.ts'
import { createOutbox } from './outbox.ts'
import { createRecords } from './records.ts'
import { createRetention } from './retention.ts'
import { connectionWithin, insertWithin } from './transactions.ts'

/** A pass comes every 33 s at most, and another keeper takes over within 10 s of an end; it begins with a pass. */
const RECOVERY_MAX_MS = 45_000

export const CAPABILITIES: Capabilities = Object.freeze({
  scope: 'store',
  survives: 'process-crash',
  settle: 'immediate',
  recovery: 'reaper',
  recoveryMaxMs: RECOVERY_MAX_MS,
  enqueueDelayMaxMs: Number.POSITIVE_INFINITY,
  retryDelayMaxMs: Number.POSITIVE_INFINITY,
  order: 'ageing-priority',
  keys: 'unique-live',
  latest: true,
  idempotentEnqueue: true,
  enqueueAtomic: true,
  transactionalEnqueue: true,
  limits: 'shared',
  slots: 'shared',
  dependencies: true,
})

export interface SqliteOptions {
  /** A path, `:memory:`, or a handle of the user's own, which `close` leaves open. */
  readonly database: string | SqliteDatabase
  readonly synchronous?: Synchronous
}

/** SQLite as a queue: one file, any number of processes on this machine. */
export class SqliteEngine implements Engine {
  readonly name = 'sqlite'
  readonly capabilities = CAPABILITIES
  readonly inspector: Inspector
  readonly controls: Controls
  readonly deadLetters: DeadLetters
  readonly records: Records
  readonly retention: Retention
  readonly logs: JobLogs
  readonly outbox: Outbox
  readonly #core: SqliteCore
  readonly #options: SqliteOptions
  #closing: Promise<void> | null = null

  /** Leaves nothing open where it rejects. */
  static async connect(options: SqliteOptions, settings: EngineSettings): Promise<SqliteEngine> {
    const { database, synchronous = 'full' } = options
    const owned = typeof database === 'string'
    if (owned && database !== ':memory:') await assertLocal(resolve(database), await readMounts())
    const connection = new Connection(owned ? openFile(database) : database)
    const syncs = syncsHere(options)
    const core = new SqliteCore(connection, settings.clock, syncs && owned ? resolve(database) : null)
    try {
      await core.read('opening the database', () =>
        configure(connection, synchronous === 'full' && !syncs ? 'FULL' : 'NORMAL', owned),
      )
      if (settings.migrate) await migrateIfNeeded(core)
      else await core.read('checking the schema', () => assertCurrent(connection))
      await core.opened(settings.migrate)
      if (owned) forbidSchemaChanges(connection.handle)
    } catch (error) {
      if (owned) connection.close()
      throw toEngineError(error, 'opening the database')
    }
    return new SqliteEngine(core, options)
  }

  private constructor(core: SqliteCore, options: SqliteOptions) {
    this.#core = core
    this.#options = options
    this.inspector = createInspector(core)
    this.controls = createControls(core)
    this.deadLetters = createDeadLetters(core)
    this.records = createRecords(core)
    this.retention = createRetention(core)
    this.logs = createLogs(core)
    this.outbox = createOutbox(core)
  }

  /** Null for a database in memory: another thread would see an empty one. */
  get threadUrl(): string | null {
    const { database, synchronous } = this.#options
    const file = typeof database === 'string' ? database : fileOf(database)
    if (file === '' || file === ':memory:') return null
    return `sqlite:${resolve(file)}?synchronous=${synchronous ?? 'full'}`
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    await this.#core.close()
    if (typeof this.#options.database !== 'string') return
    await foldLog(this.#core.connection)
    this.#core.connection.close()
  }

  /** Throws a ClosedError once `close` has been called. */
  #open(): SqliteCore {
    if (this.#closing !== null) throw new ClosedError('this SQLite engine')
    return this.#core
  }

  async ping(): Promise<void> {
    const core = this.#open()
    await core.read('ping', () => {
      core.assertUsable()
      assertCurrent(core.connection)
    })
  }

  async enqueue(jobs: readonly NewJob[], within?: Transaction): Promise<readonly Receipt[]> {
    const core = this.#open()
    if (within !== undefined) return this.#enqueueWithin(jobs, within)
    if (jobs.length === 0) return []
    const insert = (individually: boolean): readonly Receipt[] => {
      core.assertUsable()
      return insertJobs(core.connection, jobs, { nowMs: core.clock.nowMs(), individually })
    }
    const insertAlone = (): readonly Receipt[] | null => {
      core.assertUsable()
      return insertOnly(core.connection, jobs, core.clock.nowMs())
    }
    const receipts = await core.write('enqueue', insert, jobs.length === 1 ? insertAlone : null)
    core.wakeups.notify()
    return receipts
  }

  /** The jobs appear when the user commits, and never if the user rolls back. */
  #enqueueWithin(jobs: readonly NewJob[], within: Transaction): readonly Receipt[] {
    const core = this.#open()
    const theirs = connectionWithin(core, within)
    try {
      core.assertUsable()
      return insertWithin(theirs, jobs, core.clock.nowMs())
    } catch (error) {
      throw toEngineError(error, 'enqueuing within your transaction')
    }
  }

  async consume(subscription: Subscription): Promise<Consumer> {
    const core = this.#open()
    const consumer = new SqliteConsumer(core, subscription)
    core.remember(consumer)
    return consumer
  }

  async counts(): Promise<Counts> {
    return countJobs(this.#open())
  }

  async diagnose(options: DiagnoseOptions = {}): Promise<readonly Finding[]> {
    const { synchronous = 'full' } = this.#options
    const durability = { synchronous, syncsHere: syncsHere(this.#options) }
    const { diagnose } = await import('./doctor-facts.ts')
    return diagnose(this.#open(), { ...options, ...durability, recoveryMaxMs: RECOVERY_MAX_MS })
  }
}

/** Takes the write lock only when there is something to do, so that opening never waits for a busy queue. */
async function migrateIfNeeded(core: SqliteCore): Promise<void> {
  if (!(await core.read('checking the schema', () => needsMigration(core.connection)))) return
  await core.write('migrating', () => applyMigrations(core.connection, core.clock.nowMs()))
}

/** On a handle of the user's own, and in memory, SQLite does its own syncing. */
function syncsHere({ database, synchronous = 'full' }: SqliteOptions): boolean {
  return synchronous === 'full' && typeof database === 'string' && database !== ':memory:'
}
