import type { Capabilities } from '../../engine/capabilities.ts'
import { admitTransaction } from '../../engine/capability-checks.ts'
import type {
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
import type { Records } from '../../engine/records.ts'
import type { Retention } from '../../engine/retention.ts'
import type { RemovedJobViews } from '../../engine/wait-until-finished.ts'
import { ClosedError } from '../../errors.ts'
import type { NewJob } from '../../job/job.ts'
import { RedisConsumer } from './consumer.ts'
import { RedisCore } from './core.ts'
import { countJobs } from './counts.ts'
import { RedisDatabase, type Source } from './database.ts'
import { createDeadLetters } from './dead-letters.ts'
import { createInspector } from './inspector.ts'
import { createLogs } from './job-logs.ts'
import { createControls } from './leases.ts'
import { DEFAULTS, type RedisOptions } from './options.ts'
import { createRecords } from './records.ts'
import { createRetention } from './retention.ts'

export const CAPABILITIES: Capabilities = Object.freeze({
  scope: 'store',
  // What Redis has acknowledged outlives the processes. What of it a crash of the server takes is the operator's to
  // decide, by `appendfsync`: with `everysec` up to the last second.
  survives: 'process-crash',
  settle: 'immediate',
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
  slots: 'shared',
  dependencies: true,
})

/** BullMQ's queues in Redis: any number of machines, and any program that speaks BullMQ beside them. */
export class RedisEngine implements Engine {
  readonly name = 'redis'
  readonly capabilities = CAPABILITIES
  readonly threadUrl: string | null
  readonly inspector: Inspector
  readonly controls: Controls
  readonly deadLetters: DeadLetters
  readonly records: Records
  readonly retention: Retention
  readonly logs: JobLogs
  readonly #core: RedisCore
  #closing: Promise<void> | null = null

  /**
   * Leaves nothing open where it rejects. `threadUrl`: how another thread reaches the same keys; null for a client of the
   * user's own. `removedViews`: shared by the engines of the types of a cluster.
   */
  static async connect(
    source: Source,
    { clock }: EngineSettings,
    given: RedisOptions & { readonly threadUrl?: string; readonly removedViews?: RemovedJobViews } = {},
  ): Promise<RedisEngine> {
    const { threadUrl = null, removedViews, ...chosen } = given
    const options = { ...DEFAULTS, ...chosen }
    const database = new RedisDatabase({ source, clock, options })
    await database.reach()
    const core = new RedisCore(database, clock, options.pollMs, removedViews)
    try {
      await core.steps.follow()
    } catch (error) {
      database.close()
      throw error
    }
    return new RedisEngine(core, threadUrl)
  }

  private constructor(core: RedisCore, threadUrl: string | null) {
    this.#core = core
    this.threadUrl = threadUrl
    this.inspector = createInspector(core)
    this.controls = createControls(core)
    this.deadLetters = createDeadLetters(core)
    this.records = createRecords(core)
    this.retention = createRetention(core)
    this.logs = createLogs(core)
  }

  close(): Promise<void> {
    this.#closing ??= this.#core.close()
    return this.#closing
  }

  /** Throws a ClosedError once `close` has been called. */
  #open(): RedisCore {
    if (this.#closing !== null) throw new ClosedError('this Redis engine')
    return this.#core
  }

  async ping(): Promise<void> {
    await this.#open().database.ping()
  }

  async enqueue(jobs: readonly NewJob[], within?: Transaction): Promise<readonly Receipt[]> {
    if (within !== undefined) admitTransaction(this)
    const core = this.#open()
    return jobs.length === 0 ? [] : core.enqueue(jobs)
  }

  async consume(subscription: Subscription): Promise<RedisConsumer> {
    const core = this.#open()
    const consumer = new RedisConsumer(core, subscription)
    core.remember(consumer)
    await consumer.ready()
    return consumer
  }

  async counts(): Promise<Counts> {
    return countJobs(this.#open().database)
  }

  async diagnose(options: DiagnoseOptions = {}): Promise<readonly Finding[]> {
    const { diagnose } = await import('./doctor-facts.ts')
    return diagnose(this.database, { ...options, recoveryMaxMs: CAPABILITIES.recoveryMaxMs })
  }

  /** For the engine of a cluster, which has one of these for each type. */
  get database(): RedisDatabase {
    return this.#open().database
  }
}
