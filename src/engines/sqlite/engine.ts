import { resolve } from 'node:path'
import type { Capabilities } from '../../engine/capabilities.ts'
import type { DiagnoseOptions, Finding } from '../../engine/diagnosis.ts'
import type { Consumer, Counts, Engine, Receipt, Subscription, Transaction } from '../../engine/engine.ts'
import type { EngineSettings } from '../../engine/open.ts'
import type { Outbox } from '../../engine/outbox.ts'
import { EngineShell, type Facets } from '../../engine/shell.ts'
import { isMillraceError } from '../../errors.ts'
import type { NewJob } from '../../job/job.ts'
import { SqliteConsumer } from './consumer.ts'
import { SqliteCore } from './core.ts'
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
import { diagnose } from './diagnosis.ts'
import { insertJobs } from './enqueue.ts'
import { toEngineError } from './faults.ts'
import { assertLocal, readMounts } from './file-system.ts'
import { countJobs, createControls, createInspector } from './inspector.ts'
import { createLeadership } from './leadership.ts'
import { applyMigrations, assertCurrent } from './migrate.ts'
import { createOutbox } from './outbox.ts'
import { createPauses } from './pauses.ts'
import { createPresence } from './presence.ts'
import { createRetention } from './retention.ts'
import { createSchedules } from './schedules.ts'
import { connectionWithin, insertWithin } from './transactions.ts'

/** A pass comes every 33 s at most, and another keeper takes over within 10 s of an end; it begins with a pass. */
const RECOVERY_MAX_MS = 45_000

const CAPABILITIES: Capabilities = Object.freeze({
  survives: 'process-crash',
  settle: 'immediate',
  attempts: 'stored',
  recovery: 'reaper',
  recoveryMaxMs: RECOVERY_MAX_MS,
  enqueueDelayMaxMs: Number.POSITIVE_INFINITY,
  retryDelayMaxMs: Number.POSITIVE_INFINITY,
  order: 'priority',
  keys: 'unique-live',
  latest: true,
  idempotentEnqueue: true,
  enqueueAtomic: true,
  transactionalEnqueue: true,
  limits: 'shared',
  deadLetters: 'requeue',
  inspection: true,
  cancellation: true,
  dependencies: true,
  schedules: true,
  leadership: true,
  retention: true,
  presence: true,
  pausing: true,
  diagnosis: true,
})

export interface SqliteOptions {
  /** A path, `:memory:`, or a handle of the user's own, which `close` leaves open. */
  readonly database: string | SqliteDatabase
  readonly synchronous?: Synchronous
}

/** SQLite as a queue: one file, any number of processes on this machine. */
export class SqliteEngine extends EngineShell<SqliteCore> implements Engine {
  readonly name = 'sqlite'
  readonly capabilities = CAPABILITIES
  readonly #options: SqliteOptions
  readonly #settings: EngineSettings

  constructor(options: SqliteOptions, settings: EngineSettings) {
    super('this SQLite engine')
    this.#options = options
    this.#settings = settings
  }

  /** Null for a database in memory: another thread would see an empty one. */
  get threadUrl(): string | null {
    const { database, synchronous } = this.#options
    const file = typeof database === 'string' ? database : fileOf(database)
    if (file === '' || file === ':memory:') return null
    return `sqlite:${resolve(file)}?synchronous=${synchronous ?? 'full'}`
  }

  protected async connect(): Promise<{ core: SqliteCore; facets: Facets }> {
    const { database, synchronous = 'full' } = this.#options
    const owned = typeof database === 'string'
    if (owned && database !== ':memory:') await assertLocal(resolve(database), await readMounts())
    const connection = new Connection(owned ? openFile(database) : database)
    const syncsHere = this.#syncsHere()
    const core = new SqliteCore(connection, this.#settings.clock, syncsHere && owned ? resolve(database) : null)
    try {
      await core.read('opening the database', () =>
        configure(connection, synchronous === 'full' && !syncsHere ? 'FULL' : 'NORMAL', owned),
      )
      if (this.#settings.migrate) await this.#migrate(core)
      else await core.read('checking the schema', () => assertCurrent(connection))
      await core.opened()
      if (owned) forbidSchemaChanges(connection.handle)
    } catch (error) {
      if (owned) connection.close()
      throw toEngineError(error, 'opening the database')
    }
    const facets = {
      inspector: createInspector(core),
      controls: createControls(core),
      deadLetters: createDeadLetters(core),
      schedules: createSchedules(core),
      leadership: createLeadership(core),
      retention: createRetention(core),
      presence: createPresence(core),
      pauses: createPauses(core),
    }
    return { core, facets }
  }

  /** Takes the write lock only when there is something to do, so that opening never waits for a busy queue. */
  async #migrate(core: SqliteCore): Promise<void> {
    const isCurrent = await core.read('checking the schema', () => {
      try {
        assertCurrent(core.connection)
        return true
      } catch (error) {
        if (isMillraceError(error, 'ERR_SCHEMA_MISSING')) return false
        throw error
      }
    })
    if (!isCurrent) await core.write('migrating', () => applyMigrations(core.connection, this.#settings.clock.nowMs()))
  }

  protected async disconnect(core: SqliteCore): Promise<void> {
    await core.close()
    if (typeof this.#options.database === 'string') core.connection.close()
  }

  async ping(): Promise<void> {
    await this.core.read('ping', () => {
      this.core.assertUsable()
      assertCurrent(this.core.connection)
    })
  }

  async enqueue(jobs: readonly NewJob[], within?: Transaction): Promise<readonly Receipt[]> {
    const core = this.core
    if (within !== undefined) return this.#enqueueWithin(jobs, within)
    if (jobs.length === 0) return []
    const receipts = await core.write('enqueue', (individually) => {
      core.assertUsable()
      return insertJobs(core.connection, jobs, { nowMs: core.clock.nowMs(), individually })
    })
    core.wakeups.notify()
    return receipts
  }

  /** The jobs appear when the user commits, and never if the user rolls back. */
  #enqueueWithin(jobs: readonly NewJob[], within: Transaction): readonly Receipt[] {
    const theirs = connectionWithin(this.core, within)
    try {
      this.core.assertUsable()
      return insertWithin(theirs, jobs, this.#settings.clock.nowMs())
    } catch (error) {
      throw toEngineError(error, 'enqueuing within your transaction')
    }
  }

  get outbox(): Outbox {
    return createOutbox(this.core)
  }

  async consume(subscription: Subscription): Promise<Consumer> {
    const core = this.core
    const consumer = new SqliteConsumer(core, subscription)
    core.remember(consumer)
    return consumer
  }

  counts(): Promise<Counts> {
    return countJobs(this.core)
  }

  async diagnose(options: DiagnoseOptions = {}): Promise<readonly Finding[]> {
    const { synchronous = 'full' } = this.#options
    const durability = { synchronous, syncsHere: this.#syncsHere() }
    return diagnose(this.core, { ...options, ...durability, recoveryMaxMs: RECOVERY_MAX_MS })
  }

  /** On a handle of the user's own, and in memory, SQLite does its own syncing. */
  #syncsHere(): boolean {
    const { database, synchronous = 'full' } = this.#options
    return synchronous === 'full' && typeof database === 'string' && database !== ':memory:'
  }
}
