/** Records of transactions, written by a transactional producer on a real broker. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Kafka, logLevel, Partitioners, type Producer, type Transaction } from 'kafkajs'
import type { Consumer } from '../../src/engine/engine.ts'
import { endOffsets, freshName, freshTopic, groupOffsets, kafkaServer } from '../servers/kafka.ts'
import { claimed, complete, consume, eventually, never, openEngine, produce, urlOf } from './kafka-fixtures.ts'

const server = await kafkaServer()
const producers: Producer[] = []
after(() => Promise.all(producers.map((producer) => producer.disconnect())))

async function transactional(): Promise<Producer> {
  const kafka = new Kafka({ brokers: [server.address], logLevel: logLevel.NOTHING })
  const producer = kafka.producer({
    transactionalId: freshName('tx'),
    maxInFlightRequests: 1,
    idempotent: true,
    transactionTimeout: 600_000,
    createPartitioner: Partitioners.DefaultPartitioner,
  })
  producers.push(producer)
  await producer.connect()
  return producer
}

async function send(transaction: Transaction, topic: string, ...values: readonly string[]): Promise<void> {
  await transaction.send({ topic, messages: values.map((value) => ({ partition: 0, value: JSON.stringify(value) })) })
}

/** Claims and completes until there are as many; then nothing more may come. */
async function readAll(consumer: Consumer, count: number): Promise<readonly string[]> {
  const payloads: string[] = []
  await eventually(async () => {
    const leases = await claimed(consumer, 1_000, 1)
    assert.deepEqual(await consumer.settle(leases.map((lease) => ({ lease, outcome: complete }))), [])
    for (const { job } of leases) payloads.push(JSON.parse(job.payload).slice(0, 20))
    return payloads.length >= count
  }, `${count} records`)
  assert.deepEqual(await consumer.claim({ max: 10, waitMs: 0, signal: never }), [])
  return payloads
}

/** The marks of transactions have offsets too, and a commit that stood before one would be a lag for ever. */
async function committedWhole(group: string, topic: string): Promise<void> {
  const [end] = await endOffsets(server, topic)
  await eventually(async () => (await groupOffsets(server, group))[0]?.offset === end, `a commit at ${end}`)
}

test('what was aborted never runs, and what was committed or plain does, however they lie between each other', async (t) => {
  const [group, topic] = [freshName('group'), await freshTopic(server, 'mixed')]
  const [one, two] = [await transactional(), await transactional()]
  const plain = (value: string) => produce(server, [{ topic, partition: 0, value: JSON.stringify(value) }])
  const [first, beside] = [await one.transaction(), await two.transaction()]
  await send(first, topic, 'aborted 1', 'aborted 2')
  await send(beside, topic, 'kept 1')
  await plain('kept 2')
  await send(first, topic, 'aborted 3')
  await first.abort()
  // The same producer again, once each way: an abort is of the records before its mark, not of the producer.
  const second = await one.transaction()
  await send(second, topic, 'kept 3')
  await second.commit()
  const third = await one.transaction()
  await send(third, topic, 'aborted 4')
  await send(beside, topic, 'kept 4')
  await third.abort()
  await beside.commit()
  await plain('kept 5')
  const last = await two.transaction()
  await send(last, topic, 'aborted 5')
  await last.abort()
  const engine = await openEngine(urlOf(server, group))
  t.after(() => engine.close())
  const read = await readAll(await consume(engine, topic), 5)
  assert.deepEqual(read, ['kept 1', 'kept 2', 'kept 3', 'kept 4', 'kept 5'])
  await committedWhole(group, topic)
  assert.equal((await engine.counts())[topic]?.ready, 0)
})

test('an open transaction and what lies behind it wait for its end, and no claim hangs on it', async (t) => {
  const [group, topic] = [freshName('group'), await freshTopic(server, 'open')]
  const producer = await transactional()
  const engine = await openEngine(urlOf(server, group))
  t.after(() => engine.close())
  const consumer = await consume(engine, topic)
  const transaction = await producer.transaction()
  // Dated as if the transaction had been open for two minutes, which the doctor calls long.
  const timestamp = String(Date.now() - 120_000)
  const messages = ['"one"', '"two"'].map((value) => ({ partition: 0, value, timestamp }))
  await transaction.send({ topic, messages })
  await produce(server, [{ topic, partition: 0, value: '"behind"' }])
  const startMs = performance.now()
  for (let look = 0; look < 3; look += 1)
    assert.deepEqual(await consumer.claim({ max: 10, waitMs: 0, signal: never }), [])
  // One that waited for the records that nobody may read yet would take five seconds each time.
  assert.ok(performance.now() - startMs < 14_000, 'claims that may not wait have waited')
  assert.equal((await engine.counts())[topic]?.ready ?? 0, 0)
  const findings = (await engine.diagnose()).filter(({ subject }) => subject === 'transactions')
  assert.match(findings[0]?.detail ?? '', /^3 records of open-.*\/0 from offset 0 on wait for the end of a transaction/)
  await transaction.commit()
  assert.deepEqual(await readAll(consumer, 3), ['one', 'two', 'behind'])
  await committedWhole(group, topic)
})

test('a transaction of many fetches that ends in an abort leaves nothing, also where reading begins in its middle', async (t) => {
  const [group, topic] = [freshName('group'), await freshTopic(server, 'wide')]
  const producer = await transactional()
  const transaction = await producer.transaction()
  await send(transaction, topic, 'seen 0', 'seen 1', 'seen 2')
  const hasty = await openEngine(urlOf(server, group, '&isolation=read_uncommitted'))
  t.after(() => hasty.close())
  const early = await consume(hasty, topic)
  const [lease] = await claimed(early, 1)
  assert.equal(lease?.job.payload, '"seen 0"')
  assert.ok(lease)
  await early.settle([{ lease, outcome: complete }])
  await hasty.close()
  assert.equal((await groupOffsets(server, group))[0]?.offset, 1n)
  // More than three fetches take, each of which is told of the abort whose mark only the last one has.
  for (let n = 0; n < 8; n += 1) await send(transaction, topic, `aborted ${n} ${'x'.repeat(500_000)}`)
  await transaction.abort()
  await produce(server, [{ topic, partition: 0, value: '"kept"' }])
  const engine = await openEngine(urlOf(server, group))
  t.after(() => engine.close())
  assert.deepEqual(await readAll(await consume(engine, topic), 1), ['kept'])
  await committedWhole(group, topic)
})

test('with isolation=read_uncommitted records run before their transaction ends, and also if it is aborted', async (t) => {
  const [group, topic] = [freshName('group'), await freshTopic(server, 'dirty')]
  const producer = await transactional()
  const engine = await openEngine(urlOf(server, group, '&isolation=read_uncommitted'))
  t.after(() => engine.close())
  const consumer = await consume(engine, topic)
  const aborted = await producer.transaction()
  await send(aborted, topic, 'aborted')
  await aborted.abort()
  const open = await producer.transaction()
  await send(open, topic, 'open')
  assert.deepEqual(await readAll(consumer, 2), ['aborted', 'open'])
  await open.commit()
  await committedWhole(group, topic)
})
