import { admitTransaction } from '../../engine/admission.ts'
import type { Capabilities } from '../../engine/capabilities.ts'
import type { DiagnoseOptions, Finding } from '../../engine/diagnosis.ts'
import type { Consumer, Counts, Engine, Receipt, Subscription, Transaction } from '../../engine/engine.ts'
import type { EngineSettings } from '../../engine/open.ts'
import { EngineShell, type Facets } from '../../engine/shell.ts'
import type { NewJob } from '../../job/job.ts'
import { createControls } from './cancel.ts'
import { RedisConsumer } from './consumer.ts'
import { RedisCore } from './core.ts'
import { countJobs } from './counts.ts'
import { RedisDatabase, type Source } from './database.ts'
import { createDeadLetters } from './dead-letters.ts'
import { diagnose } from './diagnosis.ts'
import { createInspector } from './inspector.ts'
import { createLeadership } from './leadership.ts'
import { DEFAULTS, type RedisOptions } from './options.ts'
import { createPauses } from './pauses.ts'
import { RedisPresence } from './presence.ts'
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
  presence: true,
  pausing: true,
  diagnosis: true,
})

/** BullMQ's queues in Redis: any number of machines, and any program that speaks BullMQ beside them. */
export class RedisEngine extends EngineShell<RedisCore> implements Engine {
  readonly name = 'redis'
  readonly capabilities = CAPABILITIES
  readonly threadUrl: string | null
  readonly #source: Source
  readonly #settings: EngineSettings
  readonly #options: Required<RedisOptions>

  /** `threadUrl`: how another thread reaches the same keys; null for a client of the user's own. */
  constructor(source: Source, settings: EngineSettings, options: RedisOptions & { readonly threadUrl?: string } = {}) {
    super('this Redis engine')
    this.#source = source
    this.#settings = settings
    this.#options = { ...DEFAULTS, ...options }
    this.threadUrl = options.threadUrl ?? null
  }

  protected async connect(): Promise<{ core: RedisCore; facets: Facets }> {
    const { clock } = this.#settings
    const database = new RedisDatabase({ source: this.#source, clock, options: this.#options })
    await database.reach()
    const core = new RedisCore(database, clock, this.#options.pollMs)
    await core.steps.follow()
    const facets = {
      inspector: createInspector(core),
      controls: createControls(core),
      deadLetters: createDeadLetters(core),
      schedules: createSchedules(database),
      leadership: createLeadership(core),
      retention: createRetention(core),
      presence: new RedisPresence(database, database.keys.presence, async () => {}),
      pauses: createPauses(database),
    }
    return { core, facets }
  }

  protected disconnect(core: RedisCore): Promise<void> {
    return core.close()
  }

  async ping(): Promise<void> {
    await this.core.database.ping()
  }

  async enqueue(jobs: readonly NewJob[], within?: Transaction): Promise<readonly Receipt[]> {
    if (within !== undefined) admitTransaction(this)
    const core = this.core
    return jobs.length === 0 ? [] : core.enqueue(jobs)
  }

  async consume(subscription: Subscription): Promise<Consumer> {
    const core = this.core
    const consumer = new RedisConsumer(core, subscription)
    core.remember(consumer)
    await consumer.ready()
    return consumer
  }

  async counts(): Promise<Counts> {
    return countJobs(this.core.database)
  }

  async diagnose(options: DiagnoseOptions = {}): Promise<readonly Finding[]> {
    return diagnose(this.core.database, { ...options, recoveryMaxMs: CAPABILITIES.recoveryMaxMs ?? 0 })
  }
}
