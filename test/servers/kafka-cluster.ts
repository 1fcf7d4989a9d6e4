/** Three brokers on loopback with three copies of everything, of which two must be in sync. Up in about 10 s. */
import { freePort } from './free-port.ts'
import { type KafkaServer, type OwnKafka, startKafka } from './kafka.ts'

const COPIES = 3

export interface KafkaCluster extends KafkaServer {
  readonly brokers: readonly OwnKafka[]
  /** Ends all of them and removes their data. */
  end(): Promise<void>
}

export async function startKafkaCluster(): Promise<KafkaCluster> {
  const nodes = await Promise.all(
    Array.from({ length: COPIES }, async (_, index) => ({
      id: index + 1,
      port: await freePort(),
      controllerPort: await freePort(),
    })),
  )
  const voters = nodes.map(({ id, controllerPort }) => `${id}@127.0.0.1:${controllerPort}`).join()
  // All at once: none of them is up before the majority has met.
  const brokers = await Promise.all(
    nodes.map(({ id, port, controllerPort }) =>
      startKafka({
        'node.id': String(id),
        'controller.quorum.voters': voters,
        listeners: `PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controllerPort}`,
        'advertised.listeners': `PLAINTEXT://127.0.0.1:${port}`,
        'default.replication.factor': String(COPIES),
        'min.insync.replicas': '2',
        'offsets.topic.replication.factor': String(COPIES),
        'transaction.state.log.replication.factor': String(COPIES),
        'transaction.state.log.min.isr': '2',
        'controlled.shutdown.enable': 'true',
        'replica.lag.time.max.ms': '3000',
        // Two cores are shared by three of them: a short pause must not make a new leader.
        'broker.session.timeout.ms': '4000',
        'controller.quorum.election.timeout.ms': '2000',
        'controller.quorum.fetch.timeout.ms': '3000',
      }),
    ),
  )
  const address = nodes.map(({ port }) => `127.0.0.1:${port}`).join()
  return {
    address,
    url: `kafka://${address}`,
    brokers,
    end: async () => void (await Promise.all(brokers.map((broker) => broker.end()))),
  }
}
