/** What the engine relies on in its own loop over `fetch`. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Consumer, stringDeserializers } from '@platformatic/kafka'
import { freshName, freshTopic, kafkaServer, withAdmin } from '../servers/kafka.ts'
import { closeAll, fetchFrom, openMember, openReader, outcomeOf, produce, until } from './client.ts'

const server = await kafkaServer()
after(closeAll)

const offsetsOf = (records: readonly { readonly partition: number; readonly offset: bigint }[]): readonly string[] =>
  records.map(({ partition, offset }) => `${partition}:${offset}`)

test('a fetch reads from the positions it is given, again and again', async () => {
  const topic = await freshTopic(server, 'positions', 2)
  await produce(server, topic, 0, 5)
  await produce(server, topic, 1, 3)
  const reader = openReader(server)
  const read = (zero: bigint, one: bigint) =>
    fetchFrom(reader, topic, [
      { partition: 0, offset: zero },
      { partition: 1, offset: one },
    ])
  assert.deepEqual(offsetsOf(await read(3n, 2n)), ['0:3', '0:4', '1:2'])
  // Backwards too: nothing is remembered beyond the positions of the request.
  assert.deepEqual(offsetsOf(await read(4n, 0n)), ['0:4', '1:0', '1:1', '1:2'])
})

test('a partition that is left out is held: it sends nothing, the others go on, and it resumes where it was', async () => {
  const topic = await freshTopic(server, 'held', 2)
  const reader = openReader(server)
  await produce(server, topic, 0, 2)
  await produce(server, topic, 1, 2)
  const both = await fetchFrom(reader, topic, [
    { partition: 0, offset: 0n },
    { partition: 1, offset: 0n },
  ])
  assert.deepEqual(offsetsOf(both), ['0:0', '0:1', '1:0', '1:1'])
  await produce(server, topic, 0, 2)
  await produce(server, topic, 1, 2)
  assert.deepEqual(offsetsOf(await fetchFrom(reader, topic, [{ partition: 1, offset: 2n }])), ['1:2', '1:3'])
  assert.deepEqual(offsetsOf(await fetchFrom(reader, topic, [{ partition: 1, offset: 4n }], { maxWaitMs: 100 })), [])
  const resumed = await fetchFrom(reader, topic, [
    { partition: 0, offset: 2n },
    { partition: 1, offset: 4n },
  ])
  assert.deepEqual(offsetsOf(resumed), ['0:2', '0:3'])
})

test('a waiting fetch answers as soon as there is a record, not when its wait is over', async () => {
  const topic = await freshTopic(server, 'waits')
  const reader = openReader(server)
  await fetchFrom(reader, topic, [{ partition: 0, offset: 0n }], { maxWaitMs: 10 })
  const start = performance.now()
  const waiting = fetchFrom(reader, topic, [{ partition: 0, offset: 0n }], { maxWaitMs: 20_000 })
  await produce(server, topic, 0, 1)
  assert.deepEqual(offsetsOf(await waiting), ['0:0'])
  assert.ok(performance.now() - start < 19_000)
})

test('one fetch at a time for each broker: of two at once, one is refused by the session', async () => {
  const topic = await freshTopic(server, 'session')
  await produce(server, topic, 0, 1)
  const reader = openReader(server)
  const at = [{ partition: 0, offset: 0n }]
  await fetchFrom(reader, topic, at)
  const two = await Promise.all([outcomeOf(fetchFrom(reader, topic, at)), outcomeOf(fetchFrom(reader, topic, at))])
  assert.deepEqual(two.sort(), ['INVALID_FETCH_SESSION_EPOCH', 'ok'])
  // The next one begins a new session.
  assert.deepEqual(offsetsOf(await fetchFrom(reader, topic, at)), ['0:0'])
})

test('a position past the end is refused at once, and the reader can go on', async () => {
  const topic = await freshTopic(server, 'past')
  await produce(server, topic, 0, 2)
  const reader = openReader(server)
  const past = fetchFrom(reader, topic, [{ partition: 0, offset: 3n }], { maxWaitMs: 20_000 })
  assert.equal(await outcomeOf(past), 'OFFSET_OUT_OF_RANGE')
  assert.deepEqual(offsetsOf(await fetchFrom(reader, topic, [{ partition: 0, offset: 1n }])), ['0:1'])
})

test('a record larger than the limit of its partition still comes, alone', async () => {
  const topic = await freshTopic(server, 'bound')
  for (let n = 0; n < 3; n += 1) await produce(server, topic, 0, 1)
  const reader = openReader(server)
  const some = await fetchFrom(reader, topic, [{ partition: 0, offset: 0n }], { partitionBytes: 1 })
  assert.deepEqual(offsetsOf(some), ['0:0'])
})

test('reading without joining makes no group', async () => {
  const topic = await freshTopic(server, 'ungrouped')
  await produce(server, topic, 0, 1)
  const reader = openReader(server)
  await fetchFrom(reader, topic, [{ partition: 0, offset: 0n }])
  const groups = await withAdmin(server, (admin) => admin.listGroups())
  assert.equal(groups.has(reader.groupId), false)
})

test("the client's own stream begins at the end of the topic where nothing is committed, by default", async () => {
  const topic = await freshTopic(server, 'fallback')
  await produce(server, topic, 0, 3)
  const group = freshName('group')
  const consumer = new Consumer({
    clientId: 'millrace-tests',
    bootstrapBrokers: [server.address],
    groupId: group,
    deserializers: stringDeserializers,
  })
  const stream = await consumer.consume({ topics: [topic], mode: 'committed', maxWaitTime: 100 })
  const seen: bigint[] = []
  stream.on('data', ({ offset }) => seen.push(offset))
  try {
    await until('it has its position', () => stream.offsetsToFetch.size > 0)
    await produce(server, topic, 0, 1)
    await until('it reads', () => seen.length > 0)
    assert.deepEqual(seen, [3n])
  } finally {
    await stream.close()
    await consumer.close(true)
  }
})

test('a member that only joins holds its partitions without a stream', async () => {
  const topic = await freshTopic(server, 'bare', 3)
  const member = openMember(server, freshName('group'))
  member.topics.track(topic)
  await member.joinGroup({})
  assert.equal(member.streamsCount, 0)
  assert.deepEqual(member.assignments, [{ topic, partitions: [0, 1, 2] }])
  assert.ok(member.generationId >= 1)
})
