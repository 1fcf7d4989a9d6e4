/** Dead letters between a worker and its desk on a real broker: written, read by others, replayed, and held when they cannot be. */
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { openDesk } from '../../src/desk/desk.ts'
import { MillraceError } from '../../src/errors.ts'
import {
  createTopic,
  endOffsets,
  freshName,
  groupOffsets,
  type KafkaServer,
  kafkaServer,
  readWithConsole,
  withAdmin,
} from '../servers/kafka.ts'
import { ann, stageDesk } from './desk-stage.ts'
import { claimed, consume, dead, eventually, openEngine, produce } from './kafka-fixtures.ts'

let server: KafkaServer
before(async () => {
  server = await kafkaServer()
})

// D32 D34 D35 D36 D37 D38 D39 D40 D41 D42 D43 D49 D53
test("Kafka's own console reads a dead letter, and the replayed record in its topic with its key", async (t) => {
  const stage = await stageDesk(t, server)
  const { topic, dlq, group } = stage
  // The letter has this time as eight bytes, of which the last two are control characters. The broker keeps it for days.
  const timestampMs = (Math.floor(Date.now() / 0x1_0000) - 1) * 0x1_0000 + 0x1e1f
  await produce(server, [{ topic, key: 'deal-7', value: '{"amount":100.50}', timestampMs }])
  let isBankBack = false
  const paid: unknown[] = []
  const mill = await stage.work(
    (payload) => {
      if (!isBankBack) throw new RangeError('the bank is away')
      paid.push(payload)
    },
    { attempts: 6 },
  )
  await eventually(async () => (await mill.counts())[topic]?.dead === 1, 'the dead letter', 60_000)
  const [letter, ...others] = await readWithConsole(server, dlq, { count: 1 })
  assert.ok(letter)
  assert.deepEqual([letter.key, letter.partition, letter.offset, others], [`${topic}/0/0/${group}`, 0, 0n, []])
  assert.match(letter.headers, new RegExp(`kafka_dlt-original-topic:${topic}`))
  assert.match(letter.headers, /kafka_dlt-exception-stacktrace:RangeError: the bank is away\n +at /)
  const { error_details: error, ...envelope } = JSON.parse(letter.value)
  assert.partialDeepStrictEqual(envelope, {
    ...{ original_topic: topic, original_partition: 0, original_offset: 0, original_key: 'deal-7' },
    ...{ original_value: { amount: 100.5 }, retry_count: 5, worker_instance: `${group}-1` },
  })
  assert.deepEqual([error.exception_class, error.message], ['RangeError', 'the bank is away'])
  assert.ok(error.stack_trace.length <= 500)
  isBankBack = true
  const desk = await stage.openDesk()
  await desk.replay({ topic, offset: 0 }, ann)
  const [, again] = await readWithConsole(server, topic, { count: 2 })
  assert.deepEqual([again?.offset, again?.key, again?.value], [1n, 'deal-7', '{"amount":100.50}'])
  assert.match(again?.headers ?? '', new RegExp(`x-dlq-target-group:${group}`))
  await eventually(() => paid.length === 1, 'the payout', 30_000)
  assert.deepEqual(paid, [{ amount: 100.5 }])
  await eventually(async () => (await mill.counts())[topic]?.completed === 1, 'the completion', 30_000)
  assert.deepEqual((await mill.counts())[topic], { ready: 0, delayed: 0, inProgress: 0, completed: 1, dead: 0 })
})

// X149
test('a replay is for the group that failed; others pass over it and go on behind it', async (t) => {
  const stage = await stageDesk(t, server)
  await stage.bury(['a'])
  const refunds: unknown[] = []
  const refunder = freshName('refund-executor')
  await stage.work((payload) => void refunds.push(payload), { group: refunder })
  await eventually(() => refunds.length === 1, 'its own copy of the record', 30_000)
  const payouts: unknown[] = []
  await stage.work((payload) => void payouts.push(payload))
  const desk = await stage.openDesk()
  const committed = async () => (await groupOffsets(server, refunder)).map(({ offset }) => offset)
  await desk.replay({ topic: stage.topic, offset: 0 }, ann)
  // Else it would seem to be behind, and after five minutes stuck, until another record comes.
  await eventually(
    async () => (await committed())[0] === 2n,
    'the commit of what was passed over, the last so far',
    30_000,
  )
  await produce(server, [{ topic: stage.topic, key: 'a', value: '{"key":"next"}' }])
  await eventually(() => payouts.length === 2 && refunds.length === 2, 'the record behind the replay', 30_000)
  assert.deepEqual(payouts, [{ key: 'a' }, { key: 'next' }])
  assert.deepEqual(refunds, [{ key: 'a' }, { key: 'next' }])
  await eventually(async () => (await committed())[0] === 3n, 'the commit behind what was passed over', 30_000)
})

// X165
test('while its letter cannot be written a job stays where it is and the worker says so; then it goes on', async (t) => {
  const stage = await stageDesk(t, server)
  const { topic, dlq, group } = stage
  await createTopic(server, dlq, 1, { 'max.message.bytes': '100' })
  await produce(server, [{ topic, key: 'a', value: '1' }])
  const errors: unknown[] = []
  const mill = await stage.work(() => {
    throw new Error('never')
  })
  mill.events.on('worker.error', ({ during, error }) => {
    if (during === 'settle') errors.push(error)
  })
  await eventually(() => errors.length >= 2, 'the complaint of the worker, again and again', 30_000)
  const [error] = errors
  assert.ok(error instanceof MillraceError && error.code === 'ERR_STORAGE_FAILED')
  assert.match(error.message, /max\.message\.bytes/)
  const committed = async () => (await groupOffsets(server, group)).map(({ offset }) => offset)
  // Its start is stored a moment after it, and nothing more than that.
  await eventually(async () => (await committed()).length === 1, 'the commit of the start')
  assert.deepEqual([await committed(), await endOffsets(server, dlq)], [[0n], [0n]])
  await withAdmin(server, (admin) =>
    admin.incrementalAlterConfigs({
      resources: [
        {
          resourceType: 2,
          resourceName: dlq,
          configs: [{ name: 'max.message.bytes', configOperation: 0, value: '100000' }],
        },
      ],
    }),
  )
  await eventually(async () => (await endOffsets(server, dlq))[0] === 1n, 'the letter', 60_000)
  await eventually(async () => (await committed())[0] === 1n, 'the commit after it', 30_000)
  await produce(server, [{ topic, key: 'a', value: '2' }])
  await eventually(async () => (await endOffsets(server, dlq))[0] === 2n, 'the next one', 30_000)
})

test('a letter that was written twice is one: listed, counted, replayed once', async (t) => {
  const stage = await stageDesk(t, server)
  const { topic, dlq } = stage
  await produce(server, [{ topic, key: 'a', value: '1' }])
  // Both die with the letter written and the offset not settled, as a crash between the two would have it.
  for (const at of [1, 2]) {
    const engine = await openEngine(stage.url())
    const consumer = await consume(engine, topic)
    const [lease] = await claimed(consumer, 1, 30_000)
    assert.ok(lease)
    await consumer.settle([{ lease, outcome: dead }])
    await engine.close()
    assert.deepEqual(await endOffsets(server, dlq), [BigInt(at)])
    const topics = [{ name: topic, partitionOffsets: [{ partition: 0, offset: 0n }] }]
    await withAdmin(server, (admin) => admin.alterConsumerGroupOffsets({ groupId: stage.group, topics }))
  }
  const desk = await stage.openDesk()
  const { letters } = await desk.list({ topic })
  assert.deepEqual([letters.length, await desk.pending({ topic })], [1, { pending: 1 }])
  assert.equal((await desk.replayAll({ topic }, ann)).replayed, 1)
  assert.deepEqual([await desk.pending({ topic }), await endOffsets(server, topic)], [{ pending: 0 }, [2n]])
})

test('the desk of every engine works on a record that another program wrote, under one id through its replays', async (t) => {
  const stage = await stageDesk(t, server)
  const { topic } = stage
  await stage.bury(['a', 'b'])
  let isMended = false
  const ran: unknown[] = []
  const mill = await stage.work((payload, id) => {
    if (!isMended) throw new Error('again')
    ran.push([payload, id])
  })
  const desk = openDesk(mill)
  const id = `${topic}:0:0`
  const shown = await desk.show(id)
  assert.deepEqual(
    [shown.job.type, shown.job.payload, shown.job.key, shown.error.name, shown.error.message],
    [topic, '{"key":"a"}', 'a', 'RangeError', 'no such deal'],
  )
  await desk.replay(id, ann)
  await eventually(async () => (await mill.counts())[topic]?.dead === 2, 'its second death', 30_000)
  assert.deepEqual([(await desk.show(id)).job.replays, (await desk.show(id)).error.message], [1, 'again'])
  isMended = true
  await desk.replay(id, ann, { payload: { key: 'mended' } })
  await eventually(() => ran.length === 1, 'its run', 30_000)
  assert.deepEqual(ran, [[{ key: 'mended' }, id]])
  await assert.rejects(desk.replay(id, ann), /Dead letter not found/)
  const other = `${topic}:0:1`
  assert.equal((await desk.discard({ ids: [other] }, ann)).done, 1)
  assert.deepEqual(await desk.list(), [])
  await desk.undo(other, ann)
  assert.equal((await desk.purge({ type: topic }, ann)).done, 1)
  const actions = (await desk.audit()).map(({ action, jobId }) => [action, jobId])
  assert.deepEqual(actions, [
    ['purge', other],
    ['undo', other],
    ['discard', other],
    ['replay', id],
    ['replay', id],
  ])
  // The desk of topics sees the same acts, and the same states.
  const operator = await stage.openDesk()
  assert.deepEqual(
    (await operator.list({ topic, state: 'every' })).letters.map(({ jobId, state }) => [jobId, state]),
    [
      [id, 'replayed'],
      [other, 'removed'],
      [id, 'replayed'],
    ],
  )
  assert.equal((await operator.audit()).entries.length, 5)
})
