/** Records that other programs write: malformed ones, and those of transactions. */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Producer } from '@platformatic/kafka'
import { Kafka, logLevel, Partitioners } from 'kafkajs'
import { digestOf, recordTo } from '../../../proof/history/recorder.ts'
import { freshName } from '../../servers/kafka-topics.ts'
import type { Nemesis, Scene } from '../scene.ts'
import type { StruckKafka } from './kafka.ts'
import { pick } from './random.ts'

interface Poison {
  readonly key?: Buffer
  readonly value?: Buffer
  readonly headers?: Map<Buffer, Buffer>
}

const FAILS = '{"n":"poison","behaviours":[{"do":"throw","afterMs":0,"how":"error"}]}'

function withHeader(name: string, text: string, value = FAILS): Poison {
  return { value: Buffer.from(value), headers: new Map([[Buffer.from(name), Buffer.from(text)]]) }
}

/** What no handler can be given, and what says about itself what cannot be. */
const POISON: readonly Poison[] = [
  {},
  { value: Buffer.alloc(0) },
  { value: Buffer.from('{') },
  { value: Buffer.from([0xff, 0xfe, 0x00, 0x80]) },
  { value: Buffer.from('null'), key: Buffer.from([0xc3, 0x28]) },
  { value: Buffer.from('{"n":7}') },
  withHeader('unknown', '', '[]'),
  withHeader('millrace-attempts', '-1'),
  withHeader('millrace-attempts', 'many'),
  withHeader('millrace-priority', '99'),
  withHeader('millrace-tenant', '{"orgId":7}'),
  withHeader('millrace-options', '{'),
  withHeader('millrace-options', '{"backoff":{"kind":"nonsense"}}'),
  withHeader('millrace-options', '{"backoff":7}'),
  withHeader('millrace-options', '{"backoff":{"kind":"fixed","delay":"soon"}}'),
  withHeader('millrace-options', '{"timeoutMs":"soon"}'),
  withHeader('millrace-options', '{"timeoutMs":-5}'),
  withHeader('millrace-options', '{"keepDead":"all","keepCompleted":-3}'),
  withHeader('millrace-options', '{"name":{},"trace":7}'),
  withHeader('x-dlq-origin', 'no/place/at all'),
]

export function recordNemeses({ servers, prefix }: StruckKafka): readonly Nemesis[] {
  return [
    {
      name: 'poison',
      does: 'writes records that no handler can be given, or with headers that say nonsense, into a topic of jobs',
      async strike(scene, random) {
        const topics = await servers.jobTopics(prefix)
        if (topics.length === 0) return
        const topic = pick(random, topics)
        const messages = Array.from({ length: 1 + Math.floor(random() * 6) }, () => pick(random, POISON))
        const detail = `${messages.length} records of ${topic.slice(prefix.length)}`
        await scene.during({ nemesis: 'poison', target: null, detail }, async () =>
          noteForeign(scene, topic, await produce(topic, messages)),
        )
      },
    },
    {
      name: 'transactions',
      does: 'holds records back by an open transaction of another producer, which is then committed or aborted',
      async strike(scene, random) {
        const topics = await servers.jobTopics(prefix)
        if (topics.length === 0) return
        const topic = pick(random, topics)
        const isCommitted = random() < 0.5
        const detail = `${isCommitted ? 'committed' : 'aborted'}, ${topic.slice(prefix.length)}`
        await scene.during({ nemesis: 'transactions', target: null, detail }, async () => {
          const id = await inTransaction(topic, { isCommitted, forMs: random() * 2_000 })
          if (isCommitted) noteForeign(scene, topic, [id])
        })
      },
    },
  ]

  /** The ids of the records: the places where they stand. */
  async function produce(topic: string, messages: readonly Poison[]): Promise<readonly string[]> {
    const producer = new Producer({ clientId: 'poison', bootstrapBrokers: servers.address.split(',') })
    producer.on('error', () => {})
    try {
      const ids: string[] = []
      // Of several in one call only the first place is told.
      for (const message of messages) {
        const { offsets = [] } = await producer.send({ messages: [{ ...message, topic }], acks: -1 })
        ids.push(...offsets.map(({ partition, offset }) => `${topic}:${partition}:${offset}`))
      }
      return ids
    } finally {
      await producer.close().catch(() => {})
    }
  }

  /** What they say about themselves is not judged, and that each ends is. */
  function noteForeign({ folder }: Scene, topic: string, ids: readonly string[]): void {
    const recorder = recordTo(join(folder, 'history'), freshName('poison'))
    const type = topic.slice(prefix.length)
    for (const id of ids) {
      const job = { id, type, priority: 5, attempts: 3, digest: digestOf(''), payloadVersion: 1 }
      recorder.note({ what: 'foreign', job, program: 'poison', isStored: true })
    }
  }

  /** The id of the record. */
  async function inTransaction(
    topic: string,
    { isCommitted, forMs }: { readonly isCommitted: boolean; readonly forMs: number },
  ): Promise<string> {
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
      const value = '{"n":"a transaction","behaviours":[]}'
      const [place] = await transaction.send({ topic, messages: [{ value }] })
      await sleep(forMs)
      await (isCommitted ? transaction.commit() : transaction.abort())
      return `${topic}:${place?.partition ?? 0}:${place?.baseOffset ?? 0}`
    } finally {
      await producer.disconnect()
    }
  }
}
