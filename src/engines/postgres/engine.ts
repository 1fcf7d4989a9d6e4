import type { Capabilities } from '../../engine/capabilities.ts'
import type { DiagnoseOptions, Finding } from '../../engine/diagnosis.ts'
import type { Consumer, Counts, Engine, Receipt, Subscription, Transaction } from '../../engine/engine.ts'
import type { EngineSettings } from '../../engine/open.ts'
import type { Outbox } from '../../engine/outbox.ts'
import { EngineShell, type Facets } from '../../engine/shell.ts'
import type { NewJob } from '../../job/job.ts'
import { connectionsOf, type Handle } from './connections.ts'
import { PostgresConsumer } from './consumer.ts'
import { PostgresCore } from './core.ts'
import { Database } from './database.ts'
import { createDeadLetters } from './dead-letters.ts'
import { diagnose } from './diagnosis.ts'
import { insertJobs, isOneStatement, isPlain } from './enqueue.ts'
import { toEngineError } from './faults.ts'
import { countJobs, createControls, createInspector } from './inspector.ts'
import { createLeadership } from './leadership.ts'
import { adoptTypes, assertCurrent } from './migrate.ts'
import { namesIn } from './names.ts'
import { DEFAULTS, type PostgresOptions } from './options.ts'
import { createOutbox } from './outbox.ts'
import { createPauses } from './pauses.ts'
import { createPresence } from './presence.ts'
import { createRetention } from './retention.ts'
import { withIds } from './rows.ts'
import { createSchedules } from './schedules.ts'
import { CallerTransactions } from './transactions.ts'

const CAPABILITIES: Capabilities = Object.freeze({
  // What is committed outlives the processes and a crash of the server. The loss of its disk it outlives only with a
  // synchronous standby, which is the operator's to set up.
  survives: 'process-crash',
  settle: 'immediate',
  attempts: 'stored',
  recovery: 'reaper',
  recoveryMaxMs: 45_000,
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

/** Postgres as a queue: any number of machines. It is never migrated by opening it. */
export class PostgresEngine extends EngineShell<PostgresCore> implements Engine {
  readonly name = 'postgres'
  readonly capabilities = CAPABILITIES
  readonly threadUrl: string | null
  readonly #handle: Handle
  readonly #settings: EngineSettings
  readonly #options: Required<PostgresOptions>
  readonly #transactions = new CallerTransactions()

  /** `threadUrl`: how another thread reaches the same schema; null for a handle of the user's own. */
  constructor(
    handle: Handle,
    settings: EngineSettings,
    options: PostgresOptions & { readonly threadUrl?: string } = {},
  ) {
    super('this Postgres engine')
    this.#handle = handle
    this.#settings = settings
    // What the plans of prepared statements need is set on our own connections only.
    this.#options = { ...DEFAULTS, prepare: 'address' in handle, ...options }
    this.threadUrl = options.threadUrl ?? null
  }

  protected async connect(): Promise<{ core: PostgresCore; facets: Facets }> {
    const { clock } = this.#settings
    const { schema, prepare, pollMs, answerMs, listen } = this.#options
    const connections = await connectionsOf(this.#handle)
    const database = new Database({ source: connections.source, names: namesIn(schema), clock, prepare, answerMs })
    try {
      await database.reach()
      await assertCurrent(database)
      await adoptTypes(database)
      await this.#transactions.prepare(database)
    } catch (error) {
      await database.close().catch(() => {})
      throw toEngineError(error, 'opening')
    }
    const core = new PostgresCore({ database, clock, pollMs, connect: listen ? () => connections.listen() : null })
    core.channel.start()
    await core.call('reading the clock', () => core.steps.follow())
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

  protected disconnect(core: PostgresCore): Promise<void> {
    return core.close()
  }

  async ping(): Promise<void> {
    await this.core.call('ping', (database) => assertCurrent(database))
  }

  async enqueue(given: readonly NewJob[], within?: Transaction): Promise<readonly Receipt[]> {
    const core = this.core
    core.schema.assertKnown()
    const jobs = withIds(given, core.database.names.idType)
    if (within !== undefined) return this.#transactions.enqueue(core, jobs, within)
    if (jobs.length === 0) return []
    const receipts = await core.call('enqueue', (database) =>
      jobs.every(isPlain)
        ? core.enqueues.add(jobs)
        : isOneStatement(jobs)
          ? insertJobs(database, jobs)
          : database.transaction((queries) => insertJobs(queries, jobs)),
    )
    core.added({ mayPrecede: jobs.some((job) => job.runAtMs !== null || job.latest !== null) })
    return receipts
  }

  get outbox(): Outbox {
    return createOutbox(this.core, this.#transactions)
  }

  async consume(subscription: Subscription): Promise<Consumer> {
    const core = this.core
    const consumer = new PostgresConsumer(core, subscription)
    core.remember(consumer)
    return consumer
  }

  async counts(): Promise<Counts> {
    return countJobs(this.core)
  }

  async diagnose(options: DiagnoseOptions = {}): Promise<readonly Finding[]> {
    const { recoveryMaxMs } = CAPABILITIES
    return diagnose(this.core, { ...options, recoveryMaxMs: recoveryMaxMs ?? 0, options: this.#options })
  }
}
