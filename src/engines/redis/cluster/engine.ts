import type { Capabilities } from '../../../engine/capabilities.ts'
import { admitTransaction } from '../../../engine/capability-checks.ts'
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
} from '../../../engine/engine.ts'
import type { JobLogs } from '../../../engine/job-logs.ts'
import type { EngineSettings } from '../../../engine/open.ts'
import type { Records } from '../../../engine/records.ts'
import type { Retention } from '../../../engine/retention.ts'
import { EngineError } from '../../../errors.ts'
import type { NewJob } from '../../../job/job.ts'
import type { Clock } from '../../../time/clock.ts'
import { CAPABILITIES } from '../engine.ts'
import { toOpenError } from '../faults.ts'
import { DEFAULTS, hasTag, type RedisOptions } from '../options.ts'
import { ClusterConsumer } from './consumer.ts'
import { createDeadLetters } from './dead-letters.ts'
import { enqueueByType } from './enqueue.ts'
import { createControls, createInspector } from './inspector.ts'
import { createLogs } from './job-logs.ts'
import { ClusterNodes, type ClusterSource } from './nodes.ts'
import { createRecords } from './records.ts'
import { createRetention } from './retention.ts'
import { TypeStores } from './stores.ts'

/** What a step does, it does on one slot, so within one type. */
export const CLUSTER_CAPABILITIES: Capabilities = Object.freeze({ ...CAPABILITIES, scope: 'type' })

/** A Redis Cluster: all keys of a type are on one slot, and the types are spread over the nodes. */
export class RedisClusterEngine implements Engine {
  readonly name = 'redis'
  readonly capabilities = CLUSTER_CAPABILITIES
  readonly threadUrl: string | null
  readonly inspector: Inspector
  readonly controls: Controls
  readonly deadLetters: DeadLetters
  readonly records: Records
  readonly retention: Retention
  readonly logs: JobLogs
  readonly #stores: TypeStores
  readonly #clock: Clock
  readonly #consumers = new Set<ClusterConsumer>()

  /** Leaves nothing open where it rejects. */
  static async connect(
    source: ClusterSource,
    settings: EngineSettings,
    given: RedisOptions & { readonly threadUrl?: string } = {},
  ): Promise<RedisClusterEngine> {
    const { threadUrl = null, ...chosen } = given
    const options = { ...DEFAULTS, ...chosen }
    if (hasTag(options.prefix)) {
      const text = `the prefix '${options.prefix}' has braces; on a cluster it may have none, because each type gets its own`
      throw new EngineError('ERR_ENGINE_URL', text)
    }
    const nodes = await ClusterNodes.open(source).catch((error: unknown) => Promise.reject(toOpenError(error)))
    try {
      return new RedisClusterEngine(await TypeStores.open(nodes, settings, options), settings.clock, threadUrl)
    } catch (error) {
      nodes.close()
      throw error
    }
  }

  private constructor(stores: TypeStores, clock: Clock, threadUrl: string | null) {
    this.#stores = stores
    this.#clock = clock
    this.threadUrl = threadUrl
    this.inspector = createInspector(stores)
    this.controls = createControls(stores)
    this.deadLetters = createDeadLetters(stores)
    this.records = createRecords(stores)
    this.retention = createRetention(stores)
    this.logs = createLogs(stores)
  }

  async close(): Promise<void> {
    await Promise.all([...this.#consumers].map((consumer) => consumer.close()))
    await this.#stores.close()
  }

  /** Asks the node of every type. */
  async ping(): Promise<void> {
    await Promise.all([this.#stores.shared, ...(await this.#stores.every())].map((store) => store.ping()))
  }

  async enqueue(jobs: readonly NewJob[], within?: Transaction): Promise<readonly Receipt[]> {
    if (within !== undefined) admitTransaction(this)
    return enqueueByType(this.#stores, jobs)
  }

  async consume(subscription: Subscription): Promise<Consumer> {
    const { shared: _ } = this.#stores
    const consumer = new ClusterConsumer(this.#stores, this.#clock, subscription)
    this.#consumers.add(consumer)
    try {
      await consumer.ready()
    } catch (error) {
      this.#consumers.delete(consumer)
      await consumer.close()
      throw error
    }
    return consumer
  }

  async counts(): Promise<Counts> {
    const counts = await Promise.all((await this.#stores.every()).map((store) => store.counts()))
    return Object.assign({}, ...counts)
  }

  async diagnose(options: DiagnoseOptions = {}): Promise<readonly Finding[]> {
    const { diagnoseCluster } = await import('../cluster-facts.ts')
    return diagnoseCluster(this.#stores, { ...options, recoveryMaxMs: CAPABILITIES.recoveryMaxMs })
  }
}
