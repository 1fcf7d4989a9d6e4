/** The Kafka that other tests stand on does what they take for granted. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Producer, stringSerializers } from '@platformatic/kafka'
import {
  createTopic,
  endOffsets,
  freshTopic,
  groupOffsets,
  type KafkaServer,
  kafkaServer,
  type OwnKafka,
  readWithConsole,
  startKafka,
  startOffsets,
  withAdmin,
} from './kafka.ts'

const started: OwnKafka[] = []
const own = async (settings?: Parameters<typeof startKafka>[0]): Promise<OwnKafka> => {
  const server = await startKafka(settings)
  started.push(server)
  return server
}
after(() => Promise.all(started.map((server) => server.end())))

async function produce(
  server: KafkaServer,
  topic: string,
  values: readonly string[],
  requestTimeout = 60_000,
): Promise<void> {
  const producer = new Producer({
    clientId: 'millrace-tests',
    bootstrapBrokers: [server.address],
    serializers: stringSerializers,
    retries: 0,
    requestTimeout,
  })
  try {
    const messages = values.map((value) => ({ topic, partition: 0, key: 'k', value, headers: { from: 'test' } }))
    await producer.send({ messages })
  } finally {
    await producer.close()
  }
}

test('one broker for the process, with topics and offsets as its admin sees them', async () => {
  const server = await kafkaServer()
  assert.equal(await kafkaServer(), server)
  const topic = await freshTopic(server, 'pair', 2)
  await produce(server, topic, ['a', 'b', 'c'])
  assert.deepEqual(await endOffsets(server, topic), [3n, 0n])
  await withAdmin(server, (admin) =>
    admin.deleteRecords({ topics: [{ name: topic, partitions: [{ partition: 0, offset: 1n }] }] }),
  )
  assert.deepEqual(await startOffsets(server, topic), [1n, 0n])
  await withAdmin(server, (admin) =>
    admin.alterConsumerGroupOffsets({
      groupId: topic,
      topics: [{ name: topic, partitionOffsets: [{ partition: 1, offset: 0n }] }],
    }),
  )
  assert.deepEqual(await groupOffsets(server, topic), [{ topic, partition: 1, offset: 0n, metadata: '' }])
})

test('the console consumer of its own jars reads records with key, headers and place', async () => {
  const server = await kafkaServer()
  const topic = await freshTopic(server, 'console')
  await produce(server, topic, ['first', 'with\ttab and\nline'])
  assert.deepEqual(await readWithConsole(server, topic, { count: 2 }), [
    { partition: 0, offset: 0n, headers: 'from:test', key: 'k', value: 'first' },
    { partition: 0, offset: 1n, headers: 'from:test', key: 'k', value: 'with\ttab and\nline' },
  ])
})

test('after stop and after kill the port refuses; a start on the same port has the data, or none', async () => {
  const server = await own({ 'message.max.bytes': '2000' })
  await createTopic(server, 'kept', 1, { 'cleanup.policy': 'compact' })
  await produce(server, 'kept', ['a'])
  await assert.rejects(produce(server, 'kept', ['x'.repeat(5_000)]))
  for (const how of ['stop', 'kill'] as const) {
    await server[how]()
    await assert.rejects(produce(server, 'kept', ['b']))
    await server.start()
    assert.deepEqual(await endOffsets(server, 'kept'), [1n])
  }
  await server.kill()
  await server.start('gone')
  assert.deepEqual(await withAdmin(server, (admin) => admin.listTopics()), [])
})

test('a frozen broker answers nobody, and goes on where it was', async () => {
  const server = await own()
  const topic = await freshTopic(server)
  await produce(server, topic, ['a'])
  await server.freeze()
  await assert.rejects(produce(server, topic, ['b'], 3_000), /Request timed out|produce failed/i)
  await server.thaw()
  await produce(server, topic, ['c'])
  // What was written into the open connection is still read: a send that timed out may yet land.
  const [end = 0n] = await endOffsets(server, topic)
  assert.ok(end >= 2n, String(end))
})
