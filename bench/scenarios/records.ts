import { inBatches, makePayloads } from '../payload.ts'
import { ratioOf, type Scenario, type Scene } from '../scenario.ts'
import { drain, steadyRate } from './draining.ts'
import { closeGate, keepGate } from './gate.ts'

/** Records per job of other scenarios: plain ones are handled faster than our own jobs. */
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
  const [from, to] = (await scene.line.hear('range')) as readonly [number, number]
  for (const batch of inBatches(makePayloads(to - from, from), BATCH)) {
    await producer.send({ messages: batch.map((payload) => ({ topic, value: Buffer.from(JSON.stringify(payload)) })) })
  }
  await producer.close()
}

async function fillRange(scene: Scene, from: number, to: number): Promise<void> {
  const filling = scene.start('fill')
  filling.say('range', [from, to])
  await filling.ended
}

/** Where the drain measures each contender on the jobs that it wrote itself, with whatever it writes beside the payload. */
export const records: Scenario = {
  name: 'records',
  title: 'The same records',
  explanation:
    'Three times as many records as jobs elsewhere, plain ones without keys and headers that a producer in another process has written, are handled by a worker that does nothing with them but parse their JSON. Everybody reads the same; the clock runs as for the drain on Kafka. By the clock used until 18 November 2026 the same code handled 1.6 to 2.2 × the records of the stream and 2.3 to 2.7 × those of kafkajs, and at 20 thousand jobs 0.56 to 0.64 × and 1.6 to 1.8 ×.',
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
    await fillRange(scene, 0, warmup)
    const gate = await closeGate(scene, warmup)
    await fillRange(scene, warmup + gate.jobs, count)
    const { arrivedMs, openedMs, faults } = await drain(scene, count, 0, { warmup, gate })
    return { values: { rate: steadyRate(arrivedMs, warmup, openedMs) }, faults }
  },
  parts: { fill, gate: keepGate },
}
