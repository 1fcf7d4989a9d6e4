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
import { connectionsOf, type Handle } from './connections.ts'
import { PostgresConsumer } from './consumer.ts'
import { PostgresCore } from './core.ts'
import { Database } from './database.ts'
import { createDeadLetters } from './dead-letters.ts'
import { insertJobs, isOneStatement, isPlain } from './enqueue.ts'
import { toEngineError } from './faults.ts'
import { countJobs, createControls, createInspector } from './inspector.ts'
import { createLogs } from './job-logs.ts'
import { adoptTypes, assertCurrent } from './migrate.ts'
import { namesIn } from './names.ts'
import { DEFAULTS, type PostgresOptions } from './options.ts'
import { createOutbox } from './outbox.ts'
import { createRecords } from './records.ts'
import { createRetention } from './retention.ts'
import { withIds } from './rows.ts'
import { CallerTransactions } from './transactions.ts'

export const CAPABILITIES: Capabilities = Object.freeze({
  scope: 'store',
  // What is committed outlives the processes and a crash of the server. The loss of its disk it outlives only with a
  // synchronous standby, which is the operator's to set up.
  survives: 'process-crash',
  settle: 'immediate',
  recovery: 'reaper',
  recoveryMaxMs: 45_000,
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

/** Postgres as a queue: any number of machines. It is never migrated by opening it. */
export class PostgresEngine implements Engine {
  readonly name = 'postgres'
  readonly capabilities = CAPABILITIES
  readonly threadUrl: string | null
  readonly inspector: Inspector
  readonly controls: Controls
  readonly deadLetters: DeadLetters
  readonly records: Records
  readonly retention: Retention
  readonly logs: JobLogs
  readonly outbox: Outbox
  readonly #core: PostgresCore
  readonly #transactions: CallerTransactions
  readonly #options: Required<PostgresOptions>
  #closing: Promise<void> | null = null

  /**
   * Leaves nothing open where it rejects. `threadUrl`: how another thread reaches the same schema; null for a handle of
   * the user's own.
   */
  static async connect(
    handle: Handle,
    settings: EngineSettings,
    given: PostgresOptions & { readonly threadUrl?: string } = {},
  ): Promise<PostgresEngine> {
    const { clock } = settings
    const { threadUrl = null, ...chosen } = given
    // What the plans of prepared statements need is set on our own connections only.
    const options = { ...DEFAULTS, prepare: 'address' in handle, ...chosen }
    const { schema, prepare, pollMs, answerMs, listen } = options
    const connections = await connectionsOf(handle)
    const database = new Database({ source: connections.source, names: namesIn(schema), clock, prepare, answerMs })
    const transactions = new CallerTransactions()
    try {
      await database.reach()
      await assertCurrent(database)
      await adoptTypes(database)
      await transactions.prepare(database)
    } catch (error) {
      await database.close().catch(() => {})
      throw toEngineError(error, 'opening')
    }
    const core = new PostgresCore({ database, clock, pollMs, connect: listen ? () => connections.listen() : null })
    try {
      await core.call('reading the clock', () => core.steps.follow())
    } catch (error) {
      await core.close().catch(() => {})
      throw error
    }
    return new PostgresEngine(core, transactions, { options, threadUrl })
  }

  private constructor(
    core: PostgresCore,
    transactions: CallerTransactions,
    { options, threadUrl }: { readonly options: Required<PostgresOptions>; readonly threadUrl: string | null },
  ) {
    this.#core = core
    this.#transactions = transactions
    this.#options = options
    this.threadUrl = threadUrl
    this.inspector = createInspector(core)
    this.controls = createControls(core)
    this.deadLetters = createDeadLetters(core)
    this.records = createRecords(core)
    this.retention = createRetention(core)
    this.logs = createLogs(core)
    this.outbox = createOutbox(core, transactions)
  }

  close(): Promise<void> {
    this.#closing ??= this.#core.close()
    return this.#closing
  }

  /** Throws a ClosedError once `close` has been called. */
  #open(): PostgresCore {
    if (this.#closing !== null) throw new ClosedError('this Postgres engine')
    return this.#core
  }

  async ping(): Promise<void> {
    await this.#open().call('ping', (database) => assertCurrent(database))
  }

  async enqueue(given: readonly NewJob[], within?: Transaction): Promise<readonly Receipt[]> {
    const core = this.#open()
    core.schema.assertKnown()
    const jobs = withIds(given, core.database.names.idType)
    if (within !== undefined) return this.#transactions.enqueue(core, jobs, within)
    if (jobs.length === 0) return []
    return core.call('enqueue', async (database) => {
      if (jobs.every(isPlain)) return core.enqueues.add(jobs)
      const [job] = jobs
      if (job !== undefined && isOneStatement(jobs)) return core.insertOne(job)
      const receipts = await database.transaction((queries) => insertJobs(queries, jobs))
      core.added({ mayPrecede: jobs.some((each) => each.runAtMs !== null || each.latest !== null) })
      return receipts
    })
  }

  async consume(subscription: Subscription): Promise<Consumer> {
    const core = this.#open()
    const consumer = new PostgresConsumer(core, subscription)
    core.remember(consumer)
    return consumer
  }

  async counts(): Promise<Counts> {
    return countJobs(this.#open())
  }

  async diagnose(options: DiagnoseOptions = {}): Promise<readonly Finding[]> {
    const { recoveryMaxMs } = CAPABILITIES
    const { diagnose } = await import('./doctor-facts.ts')
    return diagnose(this.#open(), { ...options, recoveryMaxMs, options: this.#options })
  }
}
