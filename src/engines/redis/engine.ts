import { admitTransaction } from '../../engine/admission.ts'
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
import { RedisConsumer } from './consumer.ts'
import { RedisCore } from './core.ts'
import { RedisDatabase, type Source } from './database.ts'
import { createDeadLetters } from './dead-letters.ts'
import { diagnose } from './diagnosis.ts'
import { countJobs, createControls, createInspector } from './inspector.ts'
import { createLeadership } from './leadership.ts'
import { DEFAULTS, type RedisOptions } from './options.ts'
import { createRetention } from './retention.ts'
import { createSchedules } from './schedules.ts'

const CAPABILITIES: Capabilities = Object.freeze({
  // What Redis has acknowledged outlives the processes. What of it a crash of the server takes is the operator's to
  // decide, by `appendfsync`: with `everysec` up to the last second.
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
  transactionalEnqueue: false,
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

/** BullMQ's queues in Redis: any number of machines, and any program that speaks BullMQ beside them. */
export class RedisEngine implements Engine {
  readonly name = 'redis'
  readonly capabilities = CAPABILITIES
  readonly threadUrl: string | null
  readonly #source: Source
  readonly #settings: EngineSettings
  readonly #options: Required<RedisOptions>
  #core: RedisCore | null = null
  #opening: Promise<void> | null = null
  #closed = false
  #facets: Facets | null = null

  /** `threadUrl`: how another thread reaches the same keys; null for a client of the user's own. */
  constructor(source: Source, settings: EngineSettings, options: RedisOptions & { readonly threadUrl?: string } = {}) {
    this.#source = source
    this.#settings = settings
    this.#options = { ...DEFAULTS, ...options }
    this.threadUrl = options.threadUrl ?? null
  }

  open(): Promise<void> {
    if (this.#closed) return Promise.reject(new ClosedError('this Redis engine'))
    this.#opening ??= this.#open().catch((error: unknown) => {
      this.#opening = null
      throw error
    })
    return this.#opening
  }

  async #open(): Promise<void> {
    const { clock } = this.#settings
    const database = new RedisDatabase({ source: this.#source, clock, options: this.#options })
    await database.reach()
    const core = new RedisCore(database, clock, this.#options.pollMs)
    this.#core = core
    this.#facets = {
      inspector: createInspector(core),
      controls: createControls(core),
      deadLetters: createDeadLetters(core),
      schedules: createSchedules(database),
      leadership: createLeadership(database),
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
    await this.#opened().database.ping()
  }

  async enqueue(jobs: readonly NewJob[], within?: Transaction): Promise<readonly Receipt[]> {
    if (within !== undefined) admitTransaction(this)
    const core = this.#opened()
    return jobs.length === 0 ? [] : core.enqueue(jobs)
  }

  async consume(subscription: Subscription): Promise<Consumer> {
    const core = this.#opened()
    const consumer = new RedisConsumer(core, subscription)
    core.remember(consumer)
    await consumer.ready()
    return consumer
  }

  async counts(): Promise<Counts> {
    return countJobs(this.#opened())
  }

  async diagnose(options: DiagnoseOptions = {}): Promise<readonly Finding[]> {
    return diagnose(this.#opened().database, { ...options, recoveryMaxMs: CAPABILITIES.recoveryMaxMs ?? 0 })
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
    if (this.#facets === null) throw new ClosedError('this Redis engine')
    return this.#facets[name]
  }

  #opened(): RedisCore {
    if (this.#core === null) throw new ClosedError('this Redis engine')
    return this.#core
  }
}
