/** Dead letters that are larger than their topic takes. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { before, type TestContext, test } from 'node:test'
import { Producer } from '@platformatic/kafka'
import { connect, disconnect } from '../../src/engines/kafka/connection.ts'
import { parseUrl } from '../../src/engines/kafka/options.ts'
import type { LogRecord } from '../../src/engines/kafka/record.ts'
import { defineJob } from '../../src/job/definition.ts'
import { systemClock } from '../../src/time/clock.ts'
import { createTopic, endOffsets, groupOffsets, type KafkaServer, kafkaServer } from '../servers/kafka.ts'
import { ann, type DeskStage, stageDesk } from './desk-stage.ts'
import { claimed, consume, dead, eventually, openEngine, produce } from './kafka-fixtures.ts'

let server: KafkaServer
before(async () => {
  server = await kafkaServer()
})

const KB = 1_024
/** Bytes that are always the same, are no text, and that nobody can compress. */
const dense = (length: number): Buffer => createHash('shake256', { outputLength: length }).update('seed').digest()
const doom = (): never => {
  throw new RangeError('no such deal')
}

async function settledUpTo(stage: DeskStage, offset: bigint): Promise<void> {
  const isThere = async (): Promise<boolean> => (await groupOffsets(server, stage.group))[0]?.offset === offset
  await eventually(isThere, `the commit of offset ${offset}`)
}

async function recordAt(t: TestContext, stage: DeskStage, offset: bigint): Promise<LogRecord | undefined> {
  const options = parseUrl(stage.url())
  const connection = await connect(options, systemClock)
  t.after(() => disconnect(connection, options, systemClock))
  return (await connection.log.readRange(stage.topic, 0, { from: offset, to: offset + 1n, max: 1 }))[0]
}

/** The one letter of the stage goes back to its topic as it was. */
async function assertReplayed(t: TestContext, stage: DeskStage, value: Buffer): Promise<void> {
  const desk = await stage.openDesk()
  const [letter, ...others] = (await desk.list({ topic: stage.topic })).letters
  assert.ok(letter)
  assert.deepEqual([others, letter.envelope.original_key], [[], 'a'])
  const [end = 0n] = await endOffsets(server, stage.topic)
  await desk.replay({ topic: stage.topic, offset: letter.offset }, ann)
  const again = await recordAt(t, stage, end)
  assert.equal(again?.key?.toString(), 'a')
  assert.ok(again?.value?.equals(value), 'the value has changed')
  const names = [...again.headers].map(([name]) => name)
  assert.deepEqual(
    names.filter((name) => name.startsWith('x-dlq-part')),
    [],
  )
}

const VALUES: readonly (readonly [what: string, value: Buffer])[] = [
  ['compact JSON', Buffer.from(JSON.stringify({ x: 'y'.repeat(900 * KB) }))],
  ['JSON with spaces', Buffer.from(JSON.stringify({ amount: 1, x: 'y'.repeat(900 * KB) }, null, 1))],
  ['bytes that are no JSON', dense(900 * KB)],
]

for (const [what, value] of VALUES) {
  test(`with all defaults 900 KB of ${what} become one dead letter, keep back nobody, and are replayed as they were`, async (t) => {
    const stage = await stageDesk(t, server)
    const { topic, dlq } = stage
    await produce(server, [{ topic, key: 'a', value }])
    const backgroundErrors: unknown[] = []
    const mill = await stage.work(doom)
    mill.events.on('worker.error', ({ error }) => void backgroundErrors.push(error))
    await settledUpTo(stage, 1n)
    assert.deepEqual([await endOffsets(server, dlq), backgroundErrors], [[1n], []])
    await mill.close()
    await assertReplayed(t, stage, value)
  })
}

test('a letter that its topic does not take goes in parts and the worker says so; the desk has it as one', async (t) => {
  const stage = await stageDesk(t, server)
  const { topic, dlq } = stage
  await createTopic(server, dlq, 1, { 'max.message.bytes': String(200 * KB) })
  const value = dense(900 * KB)
  await produce(server, [{ topic, key: 'a', value }])
  const backgroundErrors: string[] = []
  const mill = await stage.work(doom)
  mill.events.on('worker.error', ({ error }) => void backgroundErrors.push(String(error)))
  await settledUpTo(stage, 1n)
  await eventually(() => backgroundErrors.length > 0, 'the alarm')
  assert.match(backgroundErrors.join(), /was written in 7 parts.*raise max\.message\.bytes/)
  assert.deepEqual(await endOffsets(server, dlq), [7n])
  assert.equal((await mill.counts())[topic]?.dead, 1)
  await mill.close()
  const desk = await stage.openDesk()
  assert.deepEqual(await desk.pending({ topic }), { pending: 1 })
  await assert.rejects(desk.discard({ topic, offset: 3 }, ann), /no dead letter/)
  await assertReplayed(t, stage, value)
})

test('a record that came compressed dies and is replayed, though its letter is many times as large', async (t) => {
  const stage = await stageDesk(t, server)
  const { topic } = stage
  const value = Buffer.from(JSON.stringify({ x: 'y'.repeat(3_000 * KB) }))
  const producer = new Producer({ clientId: 'plain', bootstrapBrokers: [server.address] })
  t.after(() => producer.close())
  await producer.send({ messages: [{ topic, key: Buffer.from('a'), value }], compression: 'gzip', acks: -1 })
  await (await stage.work(doom)).counts()
  await settledUpTo(stage, 1n)
  await assertReplayed(t, stage, value)
})

test('many large letters of one moment are more than one batch, and are all written once', async (t) => {
  const stage = await stageDesk(t, server)
  const { topic, dlq } = stage
  const engine = await openEngine(stage.url())
  t.after(() => engine.close())
  const consumer = await consume(engine, topic)
  const value = JSON.stringify('y'.repeat(300 * KB))
  for (let n = 0; n < 8; n += 1) await produce(server, [{ topic, key: String(n), value }])
  const leases = await claimed(consumer, 8)
  assert.deepEqual(await consumer.settle(leases.map((lease) => ({ lease, outcome: dead }))), [])
  assert.deepEqual(await endOffsets(server, dlq), [8n])
})

test('many large jobs of one call are more than one batch, and are all stored', async (t) => {
  const stage = await stageDesk(t, server)
  const mill = await stage.work(() => {})
  const job = defineJob({ type: stage.topic })
  const receipts = await mill.enqueueMany(
    job,
    Array.from({ length: 8 }, () => 'y'.repeat(300 * KB)),
  )
  assert.equal(receipts.length, 8)
  assert.deepEqual(await endOffsets(server, stage.topic), [8n])
})

test('a letter that cannot be written keeps back its own record; those that came with it are written once', async (t) => {
  const stage = await stageDesk(t, server)
  const { topic, dlq } = stage
  // Room for a small letter, and for no part of a large one with its headers.
  await createTopic(server, dlq, 1, { 'max.message.bytes': '2500' })
  const engine = await openEngine(stage.url())
  t.after(() => engine.close())
  const consumer = await consume(engine, topic)
  await produce(server, [
    { topic, key: 'small', value: '1' },
    { topic, key: 'large', value: dense(200 * KB) },
    { topic, key: 'other', value: '2' },
  ])
  const leases = await claimed(consumer, 3)
  const settlements = leases.map((lease) => ({ lease, outcome: dead }))
  for (const _ of ['first', 'again'])
    await assert.rejects(consumer.settle(settlements), /larger than the topic takes; raise its max\.message\.bytes/)
  await consumer.close()
  await engine.counts()
  assert.deepEqual(await endOffsets(server, dlq), [2n])
})
