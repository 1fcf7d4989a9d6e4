/** Topics and a group of its own for each round, on brokers that all rounds share. */
import { capabilitiesOf } from '../../../src/engines/kafka/module.ts'
import { kafkaNemeses } from '../nemeses/kafka.ts'
import { producersFor } from '../producers/index.ts'
import type { OpenStore } from '../scene.ts'
import { KafkaServers } from './kafka-servers.ts'

/**
 * Short, so that a round sees many memberships end; longer than a busy machine keeps a process waiting. Calls that wait for a
 * broker end soon, too.
 */
const TIMES = 'session=3000&heartbeat=300&drain=1500&timeout=3000'
const PARTITIONS = 3

const shared = new Map<1 | 3, Promise<KafkaServers>>()
let rounds = 0

/** Started with the first round; they end with this process. */
function kafkaServers(copies: 1 | 3): Promise<KafkaServers> {
  const servers = shared.get(copies) ?? KafkaServers.start(copies)
  shared.set(copies, servers)
  return servers
}

/** Before the process ends by itself: for tests. */
export async function stopKafkaServers(): Promise<void> {
  const servers = [...shared.values()]
  shared.clear()
  for (const each of servers) await (await each).end()
}

/** On one broker, or on three with three copies of everything. */
function openKafkaOn(copies: 1 | 3): OpenStore {
  return async () => {
    const servers = await kafkaServers(copies)
    rounds += 1
    const name = `proof-${process.pid}-${rounds}`
    const [prefix, desk] = [`${name}.`, `desk-${name}`]
    const parameters = `group=${name}&prefix=${prefix}&desk=${desk}&partitions=${PARTITIONS}&${TIMES}`
    const url = `kafka://${servers.wiredAddress}?${parameters}`
    return {
      engine: 'kafka',
      capabilities: capabilitiesOf(url),
      url,
      // Longer, because the referee is not started again when brokers that have just come back are slow.
      directUrl: `kafka://${servers.address}?${parameters.replace(/timeout=\d+/, 'timeout=30000')}`,
      wire: servers.wire,
      nemeses: kafkaNemeses({ servers, group: name, prefix, desk }),
      producers: producersFor(url),
      async destroy() {
        servers.wire.mend()
        const topics = [...(await servers.topics(prefix)), ...(await servers.topics(desk))]
        if (topics.length > 0) await servers.administer((admin) => admin.deleteTopics({ topics }))
      },
    }
  }
}

/** `MILLRACE_PROOF_BROKERS=1` plays on one broker, which is quicker; otherwise there are three. */
export const openKafka: OpenStore = (round) => openKafkaOn(process.env.MILLRACE_PROOF_BROKERS === '1' ? 1 : 3)(round)
