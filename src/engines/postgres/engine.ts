import type { Capabilities } from '../../engine/capabilities.ts'
import type { DiagnoseOptions, Finding } from '../../engine/diagnosis.ts'
import type {
  Consumer,
  Controls,
  Counts,
  DeadLetters,
  Engine,
  Inspector,
  Receipt,
  Subscription,
  Transaction,
} from '../../engine/engine.ts'
import type { Leadership } from '../../engine/leadership.ts'
import type { EngineSettings } from '../../engine/open.ts'
import type { Retention } from '../../engine/retention.ts'
import type { Schedules } from '../../engine/schedules.ts'
import { ClosedError } from '../../errors.ts'
import type { NewJob } from '../../job/job.ts'
import { connectionsOf, type Handle } from './connections.ts'
import { PostgresConsumer } from './consumer.ts'
import { PostgresCore } from './core.ts'
import { Database } from './database.ts'
import { createDeadLetters } from './dead-letters.ts'
import { diagnose } from './diagnosis.ts'
import { insertJobs, isPlain } from './enqueue.ts'
import { toEngineError } from './faults.ts'
import { withIds } from './ids.ts'
import { countJobs, createControls, createInspector } from './inspector.ts'
import { createLeadership } from './leadership.ts'
import { adoptTypes, assertCurrent } from './migrate.ts'
import { namesIn } from './names.ts'
import { DEFAULTS, type PostgresOptions } from './options.ts'
import { createRetention } from './retention.ts'
import { createSchedules } from './schedules.ts'
import { Within } from './within.ts'

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
  diagnosis: true,
})

interface Facets {
  readonly inspector: Inspector
  readonly controls: Controls
  readonly deadLetters: DeadLetters
  readonly schedules: Schedules
  readonly leadership: Leadership
  readonly retention: Retention
}

/** Postgres as a queue: any number of machines. It is never migrated by opening it. */
export class PostgresEngine implements Engine {
  readonly name = 'postgres'
  readonly capabilities = CAPABILITIES
  readonly threadUrl: string | null
  readonly #handle: Handle
  readonly #settings: EngineSettings
  readonly #options: Required<PostgresOptions>
  #core: PostgresCore | null = null
  #opening: Promise<void> | null = null
  #closed = false
  #facets: Facets | null = null
  readonly #within = new Within()

  /** `threadUrl`: how another thread reaches the same schema; null for a handle of the user's own. */
  constructor(
    handle: Handle,
    settings: EngineSettings,
    options: PostgresOptions & { readonly threadUrl?: string } = {},
  ) {
    this.#handle = handle
    this.#settings = settings
    // What the plans of prepared statements need is set on our own connections only.
    this.#options = { ...DEFAULTS, prepare: 'address' in handle, ...options }
    this.threadUrl = options.threadUrl ?? null
  }

  open(): Promise<void> {
    if (this.#closed) return Promise.reject(new ClosedError('this Postgres engine'))
    this.#opening ??= this.#open().catch((error: unknown) => {
      this.#opening = null
      throw error
    })
    return this.#opening
  }

  async #open(): Promise<void> {
    const { clock } = this.#settings
    const { schema, prepare, pollMs, answerMs, listen } = this.#options
    const connections = await connectionsOf(this.#handle)
    const database = new Database({ source: connections.source, names: namesIn(schema), clock, prepare, answerMs })
    try {
      await database.reach()
      await assertCurrent(database)
      await adoptTypes(database)
      await this.#within.prepare(database)
    } catch (error) {
      await database.close().catch(() => {})
      throw toEngineError(error, 'opening')
    }
    const core = new PostgresCore({ database, clock, pollMs, connect: listen ? () => connections.listen() : null })
    core.listener.start()
    this.#core = core
    this.#facets = {
      inspector: createInspector(core),
      controls: createControls(core),
      deadLetters: createDeadLetters(core),
      schedules: createSchedules(core),
      leadership: createLeadership(core),
      retention: createRetention(core),
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#opening?.catch(() => {})
    const core = this.#core
    if (core === null) return
    this.#core = null
    await core.close()
  }

  async ping(): Promise<void> {
    await this.#opened().call('ping', (database) => assertCurrent(database))
  }

  async enqueue(given: readonly NewJob[], within?: Transaction): Promise<readonly Receipt[]> {
    const core = this.#opened()
    const jobs = withIds(given, core.database.names.idType)
    if (within !== undefined) return this.#within.enqueue(core, jobs, within)
    if (jobs.length === 0) return []
    const receipts = await core.call('enqueue', (database) =>
      jobs.every(isPlain) ? core.enqueues.add(jobs) : database.transaction((queries) => insertJobs(queries, jobs)),
    )
    core.added({ mayPrecede: jobs.some((job) => job.runAtMs !== null || job.latest !== null) })
    return receipts
  }

  async consume(subscription: Subscription): Promise<Consumer> {
    const core = this.#opened()
    const consumer = new PostgresConsumer(core, subscription)
    core.remember(consumer)
    return consumer
  }

  async counts(): Promise<Counts> {
    return countJobs(this.#opened())
  }

  async diagnose(options: DiagnoseOptions = {}): Promise<readonly Finding[]> {
    const { recoveryMaxMs } = CAPABILITIES
    return diagnose(this.#opened(), { ...options, recoveryMaxMs: recoveryMaxMs ?? 0, options: this.#options })
  }

  get inspector(): Inspector {
    return this.#facet('inspector')
  }

  get controls(): Controls {
    return this.#facet('controls')
  }

  get deadLetters(): DeadLetters {
    return this.#facet('deadLetters')
  }

  get schedules(): Schedules {
    return this.#facet('schedules')
  }

  get leadership(): Leadership {
    return this.#facet('leadership')
  }

  get retention(): Retention {
    return this.#facet('retention')
  }

  #facet<Name extends keyof Facets>(name: Name): Facets[Name] {
    if (this.#facets === null) throw new ClosedError('this Postgres engine')
    return this.#facets[name]
  }

  #opened(): PostgresCore {
    if (this.#core === null) throw new ClosedError('this Postgres engine')
    return this.#core
  }
}
