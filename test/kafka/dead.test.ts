/** Dead letters and faults of the engine, on a real broker. */
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { open } from '../../src/client/mill.ts'
import { EngineError } from '../../src/errors.ts'
import { defineJob } from '../../src/job/definition.ts'
import { newJob } from '../fixtures/new-job.ts'
import {
  createTopic,
  endOffsets,
  freshName,
  freshTopic,
  groupOffsets,
  type KafkaServer,
  kafkaServer,
  withAdmin,
} from '../servers/kafka.ts'
import { claimed, consume, dead, eventually, openEngine, produce, urlOf } from './kafka-fixtures.ts'

let server: KafkaServer
before(async () => {
  server = await kafkaServer()
})

// D22 D30 D31 D32 D34 D35 D36 D37 D38 D39 D40 D42 D44 D45
test('a record that fails at every start ends in the dead letters of its topic, once, and nowhere else before', async (t) => {
  const topic = await freshTopic(server, 'escrow.commands')
  await produce(server, [{ topic, key: 'deal-7', value: '{"amount":100.50}' }])
  const mill = await open(urlOf(server, freshName('group')))
  t.after(() => mill.close())
  const starts: number[] = []
  const payout = defineJob({
    type: topic,
    attempts: 4,
    backoff: { kind: 'fixed', delay: 50 },
    run: ({ job }) => {
      starts.push(job.attempt)
      throw new RangeError('no such deal')
    },
  })
  const beforeMs = Date.now()
  await mill.work([payout])
  await eventually(async () => (await mill.counts())[topic]?.dead === 1, 'the dead letter')
  assert.deepEqual(starts, [1, 2, 3, 4])
  assert.deepEqual(await endOffsets(server, `${topic}.dlq`), [1n])
  // A topic of dead letters is a topic: a worker may consume it.
  const reading = await openEngine(urlOf(server, freshName('group')))
  t.after(() => reading.close())
  const [letter] = await claimed(await consume(reading, `${topic}.dlq`), 1)
  assert.ok(letter)
  const envelope = JSON.parse(letter.job.payload)
  assert.deepEqual(
    {
      topic: envelope.original_topic,
      partition: envelope.original_partition,
      offset: envelope.original_offset,
      key: envelope.original_key,
      value: envelope.original_value,
      error: [envelope.error_details.exception_class, envelope.error_details.message],
      retries: envelope.retry_count,
    },
    {
      ...{ topic, partition: 0, offset: 0, key: 'deal-7', value: { amount: 100.5 } },
      error: ['RangeError', 'no such deal'],
      retries: 3,
    },
  )
  const [firstMs, lastMs] = [Date.parse(envelope.first_failure_at), Date.parse(envelope.last_failure_at)]
  assert.ok(firstMs >= beforeMs && lastMs >= firstMs + 100 && lastMs <= Date.now())
  assert.ok(letter.job.key?.startsWith(`${topic}/0/0`))
  assert.deepEqual(await endOffsets(server, topic), [1n])
})

test('a record that cannot be decoded is dead at once and keeps back nobody', async (t) => {
  const topic = await freshTopic(server, 'undecodable')
  await produce(server, [
    { topic, key: 'k', value: Buffer.from([0xff, 0x00]) },
    { topic, key: 'k', value: '{"n":2}' },
  ])
  const mill = await open(urlOf(server, freshName('group')))
  t.after(() => mill.close())
  const ran: unknown[] = []
  await mill.work([
    defineJob({ type: topic, backoff: { kind: 'fixed', delay: 0 }, run: ({ payload }) => void ran.push(payload) }),
  ])
  await eventually(() => ran.length === 1, 'the record behind it')
  assert.deepEqual(ran, [{ n: 2 }])
  await eventually(async () => (await mill.counts())[topic]?.dead === 1, 'the dead letter')
})

// X165
test('dead letters that cannot be written leave the offset where it is, and the worker is told', async (t) => {
  const group = freshName('group')
  const topic = await freshTopic(server, 'unwritable')
  await createTopic(server, `${topic}.dlq`, 1, { 'max.message.bytes': '100' })
  const engine = await openEngine(urlOf(server, group))
  t.after(() => engine.close())
  await engine.enqueue([newJob({ type: topic }), newJob({ type: topic })])
  const consumer = await consume(engine, topic)
  const [lease, other] = await claimed(consumer, 2)
  assert.ok(lease && other)
  const settlements = [
    { lease, outcome: dead },
    { lease: other, outcome: { kind: 'complete', result: 'null', durationMs: 1 } } as const,
  ]
  const tooLarge = (error: unknown): boolean =>
    error instanceof EngineError && /max\.message\.bytes/.test(error.message)
  for (const _ of ['first', 'again']) await assert.rejects(consumer.settle(settlements), tooLarge)
  await engine.counts()
  assert.deepEqual(
    (await groupOffsets(server, group)).map(({ offset }) => offset),
    [0n],
  )
  await withAdmin(server, (admin) =>
    admin.incrementalAlterConfigs({
      resources: [
        {
          resourceType: 2,
          resourceName: `${topic}.dlq`,
          configs: [{ name: 'max.message.bytes', configOperation: 0, value: '100000' }],
        },
      ],
    }),
  )
  // The broker heeds the setting a moment after it has taken it.
  let lost: readonly unknown[] = ['nothing yet']
  const isSettled = async (): Promise<boolean> => {
    try {
      lost = await consumer.settle(settlements)
      return true
    } catch (error) {
      assert.ok(tooLarge(error), String(error))
      return false
    }
  }
  await eventually(isSettled, 'the letter', 30_000)
  assert.deepEqual(lost, [], 'the repetition lost what the first call had done')
  assert.deepEqual((await engine.counts())[topic], { ready: 0, delayed: 0, inProgress: 0, completed: 1, dead: 1 })
})

test('a broker that is not there is told soon, with its address', async () => {
  const startedMs = Date.now()
  await assert.rejects(openEngine('kafka://127.0.0.1:9?group=g'), (error) => {
    assert.ok(error instanceof EngineError)
    assert.equal(error.code, 'ERR_STORAGE_OPEN')
    assert.match(error.message, /127\.0\.0\.1:9\b/)
    return true
  })
  // It is waited for 5 s; the rest is for a machine that is busy.
  assert.ok(Date.now() - startedMs < 20_000)
})

test('a topic that is missing is created, or named where that is left to the operator', async (t) => {
  const engine = await openEngine(urlOf(server, freshName('group'), '&partitions=3'))
  const strict = await openEngine(urlOf(server, freshName('group'), '&partitions=0'))
  t.after(() => Promise.all([engine.close(), strict.close()]))
  const topic = freshName('created')
  await assert.rejects(strict.enqueue([newJob({ type: topic })]), /the topic 'created-.*' does not exist; create it/)
  await assert.rejects(consume(strict, topic), /does not exist/)
  await engine.enqueue([newJob({ type: topic })])
  assert.equal((await endOffsets(server, topic)).length, 3)
  await strict.enqueue([newJob({ type: topic })])
})
