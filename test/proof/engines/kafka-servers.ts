/** The brokers that all rounds of a run share, and what nemeses ask of them. */
import { setTimeout as sleep } from 'node:timers/promises'
import {
  Admin,
  ConfigResourceTypes,
  FindCoordinatorKeyTypes,
  IncrementalAlterConfigOperationTypes,
} from '@platformatic/kafka'
import { DLQ_SUFFIX } from '../../../src/engines/kafka/record.ts'
import type { OwnKafka } from '../../servers/kafka.ts'
import { type KafkaCluster, startKafkaCluster } from '../../servers/kafka-cluster.ts'
import { TcpWire } from '../wire.ts'

/** Compaction is looked for often, and a broker that hangs for some seconds is replaced as the leader. */
const SETTINGS = Object.freeze({ 'log.cleaner.backoff.ms': '200', 'log.initial.task.delay.ms': '100' })
/** How long a call of an administrator is repeated: brokers need some seconds to be whole again. */
const PATIENCE_MS = 60_000
const AGAIN_MS = 200

export class KafkaServers {
  readonly wire: TcpWire
  readonly #cluster: KafkaCluster

  static async start(copies: 1 | 3): Promise<KafkaServers> {
    const wire = new TcpWire()
    const front = async (port: number): Promise<number> => (await wire.front({ host: '127.0.0.1', port })).port
    const cluster = await startKafkaCluster({ copies, front, settings: SETTINGS })
    wire.unref()
    return new KafkaServers(cluster, wire)
  }

  private constructor(cluster: KafkaCluster, wire: TcpWire) {
    this.#cluster = cluster
    this.wire = wire
  }

  get brokers(): readonly OwnKafka[] {
    return this.#cluster.brokers
  }

  /** Which no fault of the wire strikes. */
  get address(): string {
    return this.#cluster.address
  }

  get wiredAddress(): string {
    return this.#cluster.fronts
  }

  async end(): Promise<void> {
    this.wire.close()
    await this.#cluster.end()
  }

  /** Repeats `use` with a new connection until it succeeds. */
  async administer<Result>(use: (admin: Admin) => Promise<Result>): Promise<Result> {
    for (const untilMs = performance.now() + PATIENCE_MS; ; await sleep(AGAIN_MS)) {
      const admin = new Admin({
        clientId: 'millrace-proof',
        bootstrapBrokers: this.address.split(','),
        retries: 0,
        requestTimeout: 5_000,
      })
      // A connection that is reset tells more errors than its call.
      admin.on('error', () => {})
      try {
        return await use(admin)
      } catch (error) {
        if (performance.now() > untilMs) throw error
      } finally {
        await admin.close().catch(() => {})
      }
    }
  }

  async topics(prefix: string): Promise<readonly string[]> {
    const names = await this.administer((admin) => admin.listTopics())
    return names.filter((name) => name.startsWith(prefix)).sort()
  }

  async jobTopics(prefix: string): Promise<readonly string[]> {
    return (await this.topics(prefix)).filter((topic) => !topic.endsWith(DLQ_SUFFIX))
  }

  async letterTopics(prefix: string): Promise<readonly string[]> {
    return (await this.topics(prefix)).filter((topic) => topic.endsWith(DLQ_SUFFIX))
  }

  /** How many partitions a topic has; 0 where it does not exist. */
  async partitionsOf(topic: string): Promise<number> {
    const names = await this.administer((admin) => admin.listTopics())
    if (!names.includes(topic)) return 0
    const metadata = await this.administer((admin) => admin.metadata({ topics: [topic], forceUpdate: true }))
    return metadata.topics.get(topic)?.partitionsCount ?? 0
  }

  /** Sets these, such as `{ 'cleanup.policy': 'compact' }`; null takes the broker's own value again. */
  async configure(topic: string, settings: Readonly<Record<string, string | null>>): Promise<void> {
    const { SET, DELETE } = IncrementalAlterConfigOperationTypes
    const configs = Object.entries(settings).map(([name, value]) =>
      value === null ? { name, configOperation: DELETE } : { name, value, configOperation: SET },
    )
    await this.administer((admin) =>
      admin.incrementalAlterConfigs({
        resources: [{ resourceType: ConfigResourceTypes.TOPIC, resourceName: topic, configs }],
      }),
    )
  }

  /** The broker that leads a partition of a topic of the round. */
  async leaderOf(topic: string, partition: number): Promise<OwnKafka> {
    const { topics } = await this.administer((admin) => admin.metadata({ topics: [topic], forceUpdate: true }))
    return this.#broker(topics.get(topic)?.partitions[partition]?.leader)
  }

  async coordinatorOf(group: string): Promise<OwnKafka> {
    const found = await this.administer((admin) =>
      admin.findCoordinator({ keyType: FindCoordinatorKeyTypes.GROUP, keys: [group] }),
    )
    return this.#broker(found[0]?.nodeId)
  }

  #broker(id: number | undefined): OwnKafka {
    const broker = this.brokers[(id ?? 1) - 1]
    if (broker === undefined) throw new Error(`there is no broker ${id}`)
    return broker
  }

  /** Resolves when every partition has all its copies again. */
  async whole(prefix: string): Promise<void> {
    for (const untilMs = performance.now() + PATIENCE_MS; performance.now() < untilMs; await sleep(AGAIN_MS)) {
      const names = await this.topics(prefix)
      if (names.length === 0) return
      const { topics, brokers } = await this.administer((admin) =>
        admin.metadata({ topics: [...names], forceUpdate: true }),
      )
      const partitions = [...topics.values()].flatMap((topic) => topic.partitions)
      const isWhole = partitions.every(({ isr, replicas, leader }) => leader >= 0 && isr.length === replicas.length)
      if (isWhole && brokers.size === this.brokers.length) return
    }
    throw new Error('the brokers did not become whole again')
  }
}
