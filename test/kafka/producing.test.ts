/** What the engine relies on when it writes. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { type Client, loadClient } from '../../src/engines/kafka/driver.ts'
import { parseUrl } from '../../src/engines/kafka/options.ts'
import { RecordProducer } from '../../src/engines/kafka/producer.ts'
import { systemClock } from '../../src/time/clock.ts'
import { newJob } from '../fixtures/new-job.ts'
import { createTopic, endOffsets, freshName, freshTopic, kafkaServer, startKafka, withAdmin } from '../servers/kafka.ts'
import { closeAll, fetchFrom, openProducer, openReader } from './client.ts'
import { eventually, openEngine, produce, urlOf } from './kafka-fixtures.ts'

const server = await kafkaServer()
after(closeAll)

test('idempotent sends at the same time to one partition arrive once each and in order', async () => {
  const topic = await freshTopic(server, 'idempotent')
  const producer = openProducer(server, { idempotent: true })
  const values = Array.from({ length: 300 }, (_, n) => String(n))
  await Promise.all(values.map((value) => producer.send({ messages: [{ topic, partition: 0, value }] })))
  const read = await fetchFrom(openReader(server), topic, [{ partition: 0, offset: 0n }])
  assert.deepEqual(
    read.map(({ value }) => value),
    values,
  )
})

test('partitions of a new topic that refuse a send until they have a leader let nothing be stored twice', async (t) => {
  const partitions = Array.from({ length: 16 }, (_, partition) => partition)
  const once = partitions.map(() => 1n)
  // Its partitions get their leaders within a moment, one after another.
  const plain = await freshTopic(server, 'led', partitions.length)
  await produce(
    server,
    partitions.map((partition) => ({ topic: plain, partition, value: 'x' })),
  )
  assert.deepEqual(await endOffsets(server, plain), once)
  const engine = await openEngine(urlOf(server, freshName('group')))
  t.after(() => engine.close())
  const enqueued = await freshTopic(server, 'led', partitions.length)
  await engine.enqueue(partitions.map(() => newJob({ type: enqueued })))
  assert.deepEqual(await endOffsets(server, enqueued), once)
})

test('a topic that is made again with fewer partitions does not end the process that writes to it', async (t) => {
  const engine = await openEngine(urlOf(server, freshName('group')))
  t.after(() => engine.close())
  const topic = await freshTopic(server, 'smaller', 16)
  const jobs = () => Array.from({ length: 64 }, () => newJob({ type: topic }))
  await engine.enqueue(jobs())
  await withAdmin(server, (admin) => admin.deleteTopics({ topics: [topic] }))
  await eventually(
    () =>
      createTopic(server, topic).then(
        () => true,
        () => false,
      ),
    'the new topic',
  )
  // The first one learns that the partitions have changed, and may fail.
  await engine.enqueue(jobs()).catch(() => {})
  const before = (await endOffsets(server, topic))[0] ?? 0n
  await eventually(
    () =>
      engine.enqueue(jobs()).then(
        () => true,
        () => false,
      ),
    'an enqueue',
  )
  assert.ok(((await endOffsets(server, topic))[0] ?? 0n) >= before + 64n)
})

test('a send answers where each record went', async () => {
  const topic = await freshTopic(server, 'where', 2)
  const producer = openProducer(server, { idempotent: true })
  const first = await producer.send({ messages: [{ topic, partition: 1, value: 'a' }] })
  assert.deepEqual(first.offsets, [{ topic, partition: 1, offset: 0n }])
  const second = await producer.send({
    messages: [
      { topic, partition: 1, value: 'b' },
      { topic, partition: 1, value: 'c' },
    ],
  })
  assert.deepEqual(second.offsets, [{ topic, partition: 1, offset: 1n }])
})

test('while the broker is unreachable an idempotent send neither fails nor ends: callers need a deadline', async () => {
  const own = await startKafka()
  try {
    await createTopic(own, 'away')
    const idempotent = openProducer(own, { idempotent: true })
    const plain = openProducer(own, { retries: 3 })
    await idempotent.send({ messages: [{ topic: 'away', partition: 0, value: 'before' }] })
    await plain.send({ messages: [{ topic: 'away', partition: 0, value: 'before' }] })
    await own.kill()
    let ended = false
    const waiting = idempotent.send({ messages: [{ topic: 'away', partition: 0, value: 'during' }] }).finally(() => {
      ended = true
    })
    // A plain one gives up after its retries; by then the idempotent one has had more than as many.
    for (let n = 0; n < 3; n += 1)
      await assert.rejects(plain.send({ messages: [{ topic: 'away', partition: 0, value: 'plain' }] }))
    assert.equal(ended, false)
    await own.start()
    await waiting
    assert.deepEqual(await endOffsets(own, 'away'), [3n])
  } finally {
    await closeAll()
    await own.end()
  }
})

test('a record that waits for metadata while another send fails is written, and not taken for one that is there', async (t) => {
  const client = await loadClient()
  const gate = Promise.withResolvers<void>()
  let isGated = false
  const delayed = (options: ConstructorParameters<Client['Producer']>[0]) => {
    const producer = new client.Producer(options)
    const ask = producer[client.kMetadata].bind(producer)
    producer[client.kMetadata] = (request, callback) =>
      void (isGated && request.topics?.includes(topic) ? gate.promise : Promise.resolve()).then(() =>
        ask(request, callback),
      )
    return producer
  }
  const topic = await freshTopic(server, 'written')
  const narrow = await freshTopic(server, 'narrow')
  await withAdmin(server, (admin) =>
    admin.incrementalAlterConfigs({
      resources: [
        {
          ...{ resourceType: client.ConfigResourceTypes.TOPIC, resourceName: narrow },
          configs: [{ name: 'max.message.bytes', value: '100', configOperation: 0 }],
        },
      ],
    }),
  )
  const Producer = new Proxy(client.Producer, { construct: (_, [options]) => delayed(options) })
  const late = { ...client, Producer }
  const producer = new RecordProducer(late, parseUrl(urlOf(server, freshName('group'))), systemClock)
  t.after(() => producer.close())
  const record = (to: string, value: Buffer) => ({ topic: to, key: null, value, headers: new Map() })
  await producer.sendAlone([record(topic, Buffer.from('first'))])
  isGated = true
  const second = producer.sendAlone([record(topic, Buffer.from('second'))])
  await assert.rejects(producer.sendAlone([record(narrow, randomBytes(10_000))]), { code: 'ERR_STORAGE_FAILED' })
  gate.resolve()
  await second
  const read = await fetchFrom(openReader(server), topic, [{ partition: 0, offset: 0n }])
  assert.deepEqual(
    read.map(({ value }) => value),
    ['first', 'second'],
  )
})
