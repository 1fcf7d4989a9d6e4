/** Brokers on loopback: three with three copies of everything, of which two must be in sync, or one. Up in about 10 s. */
import { freePort } from './free-port.ts'
import { type KafkaServer, type OwnKafka, startKafka } from './kafka.ts'

export interface KafkaCluster extends KafkaServer {
  /** In the order of their ids, which begin at 1. */
  readonly brokers: readonly OwnKafka[]
  /** Like `address`, by way of `front`. */
  readonly fronts: string
  /** Ends all of them and removes their data. */
  end(): Promise<void>
}

export interface ClusterOptions {
  readonly copies?: 1 | 3
  /** The port by which clients reach a second listener of a broker, such as that of a proxy before this one. */
  front?(port: number): Promise<number>
  /** As in server.properties. */
  readonly settings?: Readonly<Record<string, string>>
}

export async function startKafkaCluster(options: ClusterOptions = {}): Promise<KafkaCluster> {
  const { copies = 3, front, settings = {} } = options
  const nodes = await Promise.all(
    Array.from({ length: copies }, async (_, index) => {
      const [port, controllerPort, secondPort] = [await freePort(), await freePort(), await freePort()]
      return { id: index + 1, port, controllerPort, secondPort, frontPort: (await front?.(secondPort)) ?? null }
    }),
  )
  const voters = nodes.map(({ id, controllerPort }) => `${id}@127.0.0.1:${controllerPort}`).join()
  // All at once: none of them is up before the majority has met.
  const brokers = await Promise.all(
    nodes.map((node) =>
      startKafka({
        'node.id': String(node.id),
        'controller.quorum.voters': voters,
        ...listenersOf(node),
        ...(copies === 3 && COPIED),
        ...settings,
      }),
    ),
  )
  const addressOf = (ports: readonly number[]): string => ports.map((port) => `127.0.0.1:${port}`).join()
  const address = addressOf(nodes.map(({ port }) => port))
  return {
    address,
    url: `kafka://${address}`,
    fronts: addressOf(nodes.map(({ frontPort, port }) => frontPort ?? port)),
    brokers,
    end: async () => void (await Promise.all(brokers.map((broker) => broker.end()))),
  }
}

interface Node {
  readonly port: number
  readonly controllerPort: number
  readonly secondPort: number
  readonly frontPort: number | null
}

function listenersOf({ port, controllerPort, secondPort, frontPort }: Node): Readonly<Record<string, string>> {
  const own = `PLAINTEXT://127.0.0.1:${port}`
  const controller = `CONTROLLER://127.0.0.1:${controllerPort}`
  if (frontPort === null) return { listeners: `${own},${controller}`, 'advertised.listeners': own }
  return {
    listeners: `${own},FRONT://127.0.0.1:${secondPort},${controller}`,
    'advertised.listeners': `${own},FRONT://127.0.0.1:${frontPort}`,
    'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,FRONT:PLAINTEXT,CONTROLLER:PLAINTEXT',
  }
}

const COPIED = Object.freeze({
  'default.replication.factor': '3',
  'min.insync.replicas': '2',
  'offsets.topic.replication.factor': '3',
  'transaction.state.log.replication.factor': '3',
  'transaction.state.log.min.isr': '2',
  'controlled.shutdown.enable': 'true',
  'replica.lag.time.max.ms': '3000',
  // Two cores are shared by three of them: a short pause must not make a new leader.
  'broker.session.timeout.ms': '4000',
  'controller.quorum.election.timeout.ms': '2000',
  'controller.quorum.fetch.timeout.ms': '3000',
})
