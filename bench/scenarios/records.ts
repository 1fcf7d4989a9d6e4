import { inBatches, makePayloads } from '../payload.ts'
import { ratioOf, type Scenario, type Scene } from '../scenario.ts'
import { drain, steadyRate } from './draining.ts'

/** Records per job of other scenarios: with fewer, a reader that prefetches would hold most of them before the clock starts. */
const RECORDS_PER_JOB = 3
const BATCH = 1_000

function countOf({ sizes }: Scene): { readonly count: number; readonly warmup: number } {
  const handled = sizes.jobs * RECORDS_PER_JOB
  const warmup = Math.ceil(handled / 10)
  return { count: warmup + handled, warmup }
}

/** A producer that knows none of the contenders, in a process of its own. */
async function fill(scene: Scene): Promise<void> {
  // Only here: every measuring process loads this module, and its memory is measured.
  const [{ Producer }, { addressOf, topicOf }] = await Promise.all([
    import('@platformatic/kafka'),
    import('../servers/kafka.ts'),
  ])
  const url = scene.place.url ?? ''
  const producer = new Producer<Buffer, Buffer, Buffer, Buffer>({
    clientId: 'bench',
    bootstrapBrokers: [addressOf(url)],
    acks: -1,
  })
  const topic = topicOf(url)
  for (const batch of inBatches(makePayloads(countOf(scene).count), BATCH)) {
    await producer.send({ messages: batch.map((payload) => ({ topic, value: Buffer.from(JSON.stringify(payload)) })) })
  }
  await producer.close()
}

/** Where the drain measures each contender on the jobs that it wrote itself, with whatever it writes beside the payload. */
export const records: Scenario = {
  name: 'records',
  title: 'The same records',
  explanation:
    'Three times as many records as jobs elsewhere, plain ones without keys and headers that a producer in another process has written, are handled by a worker that does nothing with them but parse their JSON. Everybody reads the same; the clock runs as for the drain.',
  families: ['kafka'],
  metrics: [{ key: 'rate', title: 'rate', unit: '/s' }],
  targets: [
    {
      family: 'kafka',
      text: "records handled on Kafka ≥ 2 × the client's own stream",
      bound: '≥',
      limit: 2,
      unit: '×',
      measured: (figure) => ratioOf(figure('millrace-kafka', 'rate'), figure('kafka-stream', 'rate')),
    },
    {
      family: 'kafka',
      text: 'records handled on Kafka ≥ 2 × kafkajs',
      bound: '≥',
      limit: 2,
      unit: '×',
      measured: (figure) => ratioOf(figure('millrace-kafka', 'rate'), figure('kafkajs', 'rate')),
    },
  ],
  async measure(scene) {
    const { count, warmup } = countOf(scene)
    await scene.start('fill').ended
    const { arrivedMs, faults } = await drain(scene, count)
    return { values: { rate: steadyRate(arrivedMs, warmup) }, faults }
  },
  parts: { fill },
}
