/**
 * On Kafka: a gate in front of the records that are timed, so that a worker that is warm can read all of them from one
 * moment on. It is an open transaction: who reads what is committed, as everybody here does by default, is sent nothing
 * from its first record on, whoever wrote what stands behind it.
 */
import { makePayloads, sharedNowMs } from '../payload.ts'
import type { Scene } from '../scenario.ts'

export interface Gate {
  /** It is made of jobs too, one in each partition: so many of those that are timed. */
  readonly jobs: number
  /** Answers when it was opened, on this process's clock: before the broker has heard of it. */
  open(): Promise<number>
  /** To be called when nothing is timed any more. */
  end(): Promise<void>
}

/** Behind what is in the topic now. `from`: the index of the first of its jobs. */
export async function closeGate(scene: Scene, from: number): Promise<Gate> {
  const keeper = scene.start('gate')
  keeper.say('from', from)
  const jobs = Number(await keeper.hear('closed'))
  return {
    jobs,
    async open() {
      keeper.say('open')
      return Number(await keeper.hear('opened')) - performance.timeOrigin
    },
    async end() {
      keeper.say('end')
      await keeper.ended
    },
  }
}

/** The process that keeps the gate: one of its own, so that it takes nothing from the one that measures. */
export async function keepGate({ line, place }: Scene): Promise<void> {
  // Only here: every measuring process loads this module, and its memory is measured.
  const [{ Kafka, logLevel, Partitioners }, { addressOf, PARTITIONS, topicOf }] = await Promise.all([
    import('kafkajs'),
    import('../servers/kafka.ts'),
  ])
  const url = place.url ?? ''
  const topic = topicOf(url)
  const kafka = new Kafka({ clientId: 'bench', brokers: [addressOf(url)], logLevel: logLevel.NOTHING })
  const producer = kafka.producer({
    transactionalId: topic,
    maxInFlightRequests: 1,
    idempotent: true,
    // The broker would abort it, and the jobs in it would be missing.
    transactionTimeout: 600_000,
    createPartitioner: Partitioners.DefaultPartitioner,
  })
  await producer.connect()
  const payloads = makePayloads(PARTITIONS, Number(await line.hear('from')))
  const transaction = await producer.transaction()
  await transaction.send({
    topic,
    messages: payloads.map((payload, partition) => ({ partition, value: JSON.stringify(payload) })),
  })
  line.say('closed', PARTITIONS)
  await line.hear('open')
  const openedMs = sharedNowMs()
  await transaction.commit()
  line.say('opened', openedMs)
  await line.hear('end')
  await producer.disconnect()
}
