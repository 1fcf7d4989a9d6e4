/** Records that other programs write: malformed ones, and those of transactions. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Producer } from '@platformatic/kafka'
import { Kafka, logLevel, Partitioners } from 'kafkajs'
import { freshName } from '../../servers/kafka-topics.ts'
import type { Nemesis } from '../scene.ts'
import type { StruckKafka } from './kafka.ts'
import { pick } from './processes.ts'

/** What no handler can be given, and what looks like a job of ours and is none. */
const POISON: readonly {
  readonly key?: Buffer
  readonly value?: Buffer
  readonly headers?: Map<Buffer, Buffer>
}[] = [
  {},
  { value: Buffer.alloc(0) },
  { value: Buffer.from('{') },
  { value: Buffer.from([0xff, 0xfe, 0x00, 0x80]) },
  { value: Buffer.from('null'), key: Buffer.from([0xc3, 0x28]) },
  { value: Buffer.from('{"n":7}') },
  { value: Buffer.from('[]'), headers: new Map([[Buffer.from('x-millrace'), Buffer.from('nonsense')]]) },
  { value: Buffer.from('"text"'), headers: new Map([[Buffer.from('id'), Buffer.alloc(0)]]) },
]

export function recordNemeses({ servers, prefix }: StruckKafka): readonly Nemesis[] {
  const jobTopics = async (): Promise<readonly string[]> =>
    (await servers.topics(prefix)).filter((topic) => !topic.endsWith('.dlq'))
  return [
    {
      name: 'poison',
      does: 'writes records that no handler can be given into a topic of jobs',
      async strike(scene, random) {
        const topics = await jobTopics()
        if (topics.length === 0) return
        const topic = pick(topics, random)
        const messages = Array.from({ length: 1 + Math.floor(random() * 6) }, () => ({
          ...pick(POISON, random),
          topic,
        }))
        const detail = `${messages.length} records of ${topic.slice(prefix.length)}`
        await scene.during({ nemesis: 'poison', target: null, detail }, () => produce(messages))
      },
    },
    {
      name: 'transactions',
      does: 'holds records back by an open transaction of another producer, which is then committed or aborted',
      async strike(scene, random) {
        const topics = await jobTopics()
        if (topics.length === 0) return
        const topic = pick(topics, random)
        const isCommitted = random() < 0.5
        const detail = `${isCommitted ? 'committed' : 'aborted'}, ${topic.slice(prefix.length)}`
        await scene.during({ nemesis: 'transactions', target: null, detail }, () =>
          inTransaction(topic, { isCommitted, forMs: random() * 2_000 }),
        )
      },
    },
  ]

  async function produce(messages: readonly ((typeof POISON)[number] & { readonly topic: string })[]): Promise<void> {
    const producer = new Producer({ clientId: 'poison', bootstrapBrokers: servers.address.split(',') })
    producer.on('error', () => {})
    try {
      await producer.send({ messages: messages.map((message) => ({ ...message })), acks: -1 })
    } catch {
      // A topic that another fault has struck.
    } finally {
      await producer.close().catch(() => {})
    }
  }

  async function inTransaction(
    topic: string,
    { isCommitted, forMs }: { readonly isCommitted: boolean; readonly forMs: number },
  ): Promise<void> {
    const kafka = new Kafka({ brokers: servers.address.split(','), logLevel: logLevel.NOTHING, retry: { retries: 8 } })
    const producer = kafka.producer({
      transactionalId: freshName('tx'),
      maxInFlightRequests: 1,
      idempotent: true,
      transactionTimeout: 10_000,
      createPartitioner: Partitioners.DefaultPartitioner,
    })
    try {
      await producer.connect()
      const transaction = await producer.transaction()
      await transaction.send({ topic, messages: [{ value: '{"n":"a transaction","behaviours":[]}' }] })
      await sleep(forMs)
      await (isCommitted ? transaction.commit() : transaction.abort())
    } finally {
      await producer.disconnect()
    }
  }
}
