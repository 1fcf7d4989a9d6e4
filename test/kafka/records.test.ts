/** Records of all kinds, and records that are gone, on a real broker. */
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { Producer } from '@platformatic/kafka'
import { open } from '../../src/client/mill.ts'
import { defineJob } from '../../src/job/definition.ts'
import { createTopic, freshName, freshTopic, type KafkaServer, kafkaServer, withAdmin } from '../servers/kafka.ts'
import { claimed, complete, consume, eventually, openEngine, produce, urlOf } from './kafka-fixtures.ts'

let server: KafkaServer
before(async () => {
  server = await kafkaServer()
})

async function deleteBelow(topic: string, offset: bigint): Promise<void> {
  await withAdmin(server, (admin) =>
    admin.deleteRecords({ topics: [{ name: topic, partitions: [{ partition: 0, offset }] }] }),
  )
}

const values = (topic: string, from: number, count: number) =>
  Array.from({ length: count }, (_, n) => ({ topic, value: String(from + n) }))

test('records that were deleted before a worker came are passed over, and it says so', async (t) => {
  const group = freshName('group')
  const topic = await freshTopic(server, 'expired')
  await produce(server, values(topic, 0, 10))
  const first = await openEngine(urlOf(server, group))
  const [lease] = await claimed(await consume(first, topic), 1, 30_000)
  assert.equal(lease?.job.payload, '0')
  await first.close()
  await deleteBelow(topic, 7n)
  const mill = await open(urlOf(server, group))
  t.after(() => mill.close())
  const backgroundErrors: string[] = []
  mill.events.on('worker.error', ({ error }) => void backgroundErrors.push(String(error)))
  const ran: unknown[] = []
  await mill.work([
    defineJob({ type: topic, backoff: { kind: 'fixed', delay: 0 }, run: ({ payload }) => void ran.push(payload) }),
  ])
  await eventually(() => ran.length === 3, 'what is left', 30_000)
  assert.deepEqual(ran, [7, 8, 9])
  await eventually(() => backgroundErrors.some((text) => /deleted; going on at 7/.test(text)), 'the word about it')
})

test('records that are deleted under a reader that is behind are passed over, and it goes on with the first that is left', async (t) => {
  const topic = await freshTopic(server, 'deleted')
  const engine = await openEngine(urlOf(server, freshName('group')))
  t.after(() => engine.close())
  const consumer = await consume(engine, topic)
  const backgroundErrors: string[] = []
  consumer.listen({ onTrouble: (error) => void backgroundErrors.push(String(error)) })
  // So large that it reads them one by one, and stands still while the first of them are not settled.
  const large = `"${'x'.repeat(900_000)}"`
  for (let n = 0; n < 30; n += 1) await produce(server, [{ topic, key: 'k', value: large }])
  const [head] = await claimed(consumer, 1, 30_000)
  assert.ok(head)
  await deleteBelow(topic, 28n)
  let last = head
  const seen = new Set<string>()
  while (last.job.id !== `${topic}:0:29`) {
    assert.deepEqual(await consumer.settle([{ lease: last, outcome: complete }]), [])
    const [next] = await claimed(consumer, 1, 30_000)
    assert.ok(next, `it hangs after ${last.job.id}`)
    assert.equal(seen.has(next.job.id), false, `${next.job.id} came twice`)
    seen.add(next.job.id)
    last = next
  }
  assert.ok(seen.size < 29, 'all was in memory, so nothing was shown')
  await eventually(() => backgroundErrors.some((text) => /going on at 28/.test(text)), 'the word about it')
})

test('a topic that is made anew under its reader is read from its beginning', async (t) => {
  const topic = await freshTopic(server, 'anew')
  const engine = await openEngine(urlOf(server, freshName('group'), '&timeout=5000'))
  t.after(() => engine.close())
  const consumer = await consume(engine, topic)
  await produce(server, values(topic, 0, 5))
  const old = await claimed(consumer, 5, 30_000)
  assert.deepEqual(await consumer.settle(old.map((lease) => ({ lease, outcome: complete }))), [])
  await withAdmin(server, (admin) => admin.deleteTopics({ topics: [topic] }))
  await eventually(
    async () => !(await withAdmin(server, (admin) => admin.listTopics())).includes(topic),
    'its end',
    30_000,
  )
  await createTopic(server, topic)
  await produce(server, values(topic, 100, 2))
  const fresh = await claimed(consumer, 2, 60_000)
  assert.deepEqual(
    fresh.map(({ job }) => job.payload),
    ['100', '101'],
  )
  assert.deepEqual(await consumer.settle(fresh.map((lease) => ({ lease, outcome: complete }))), [])
})

test('records without a key, without a value, with a huge value and with strange headers are jobs', async (t) => {
  const topic = freshName('strange')
  await createTopic(server, topic, 1, { 'max.message.bytes': '4000000' })
  const producer = new Producer<Buffer, Buffer, Buffer, Buffer>({
    clientId: 'plain',
    bootstrapBrokers: [server.address],
  })
  const huge = JSON.stringify('x'.repeat(2_000_000))
  const latin = new Map([
    [Buffer.from([0x67, 0xe4]), Buffer.from([0xff, 0xfe, 0x00])],
    [Buffer.from('millrace-attempts'), Buffer.from([0xff, 0x31])],
    [Buffer.from('millrace-tenant'), Buffer.from('{"orgId":')],
  ])
  await producer.send({
    acks: -1,
    messages: [
      { topic, value: Buffer.from('1') },
      { topic, key: Buffer.from('k') },
      { topic, key: Buffer.from([0xff, 0x00]), value: Buffer.from(huge) },
      { topic, key: Buffer.from('k'), value: Buffer.from('"ü"'), headers: latin },
    ],
  })
  await producer.close()
  const engine = await openEngine(urlOf(server, freshName('group')))
  t.after(() => engine.close())
  const consumer = await consume(engine, topic)
  const jobs = new Map<string, string>()
  while (jobs.size < 4) {
    const leases = await claimed(consumer, 1, 30_000)
    assert.equal(leases.length, 1, `only ${[...jobs.keys()].join()} came`)
    for (const { job, verdict } of leases) {
      assert.equal(verdict, undefined)
      assert.deepEqual([job.attempts, job.tenant], [3, null])
      jobs.set(job.id.split(':').at(-1) ?? '', job.payload)
    }
    assert.deepEqual(await consumer.settle(leases.map((lease) => ({ lease, outcome: complete }))), [])
  }
  assert.deepEqual([...jobs].sort(), [
    ['0', '1'],
    ['1', 'null'],
    ['2', huge],
    ['3', '"ü"'],
  ])
})
