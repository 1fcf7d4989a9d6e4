/** A topic that is deleted and made again at once, under its readers: offsets belong to a topic, not to its name. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Consumer } from '../../src/engine/engine.ts'
import type { Lease } from '../../src/engine/outcome.ts'
import { newJob } from '../fixtures/new-job.ts'
import { freshName, freshTopic, groupOffsets, kafkaServer, withAdmin } from '../servers/kafka.ts'
import { claimed, complete, consume, dead, eventually, openEngine, produce, urlOf } from './kafka-fixtures.ts'

const server = await kafkaServer()
const OLD = 40
const NEW = 100

/** So soon that nobody who reads can have seen it missing. */
async function recreate(topic: string): Promise<void> {
  await withAdmin(server, async (admin) => {
    await admin.deleteTopics({ topics: [topic] })
    await eventually(
      () =>
        admin.createTopics({ topics: [topic], partitions: 1, replicas: 1 }).then(
          () => true,
          () => false,
        ),
      'the new topic',
    )
  })
  await eventually(
    () =>
      produce(
        server,
        Array.from({ length: NEW }, (_, n) => ({ topic, partition: 0, value: `"new ${n}"` })),
      ).then(
        () => true,
        () => false,
      ),
    'its records',
  )
}

const expected = Array.from({ length: NEW }, (_, n) => `"new ${n}"`)
const payloadsOf = (leases: readonly Lease[]): readonly string[] => leases.map(({ job }) => job.payload)

async function settle(consumer: Consumer, leases: readonly Lease[]): Promise<void> {
  assert.deepEqual(await consumer.settle(leases.map((lease) => ({ lease, outcome: complete }))), [])
}

/** Those that are of the new topic, until all are there: what was in memory of the old one may still come. */
async function readNew(consumer: Consumer): Promise<readonly string[]> {
  const payloads: string[] = []
  await eventually(async () => {
    const leases = await claimed(consumer, NEW, 1)
    await consumer.settle(leases.map((lease) => ({ lease, outcome: complete })))
    payloads.push(...payloadsOf(leases).filter((payload) => payload.startsWith('"new')))
    return payloads.length >= NEW
  }, 'the records of the new topic')
  return payloads
}

/** One key, and so large that it fetches nothing while the first of them is not settled. */
const large = (topic: string) =>
  Array.from({ length: OLD }, (_, n) => ({
    ...{ topic, partition: 0, key: 'k' },
    value: JSON.stringify(`old ${n} ${'x'.repeat(20_000)}`),
  }))

test('a reader that waits at the end of the old topic reads the new one from its beginning, again and again', async (t) => {
  const [group, topic] = [freshName('group'), await freshTopic(server, 'quick')]
  const engine = await openEngine(urlOf(server, group))
  t.after(() => engine.close())
  const consumer = await consume(engine, topic)
  await produce(
    server,
    Array.from({ length: OLD }, (_, n) => ({ topic, partition: 0, value: String(n) })),
  )
  await settle(consumer, await claimed(consumer, OLD))
  for (let round = 0; round < 3; round += 1) {
    await recreate(topic)
    assert.deepEqual((await readNew(consumer)).toSorted(), expected.toSorted(), `round ${round}`)
  }
  await eventually(async () => (await groupOffsets(server, group))[0]?.offset === BigInt(NEW), 'the commit')
})

test('a reader that had enough in hand while the topic was made anew skips nothing of it, and says so', async (t) => {
  const [group, topic] = [freshName('group'), await freshTopic(server, 'sated')]
  const engine = await openEngine(urlOf(server, group))
  t.after(() => engine.close())
  const consumer = await consume(engine, topic)
  const backgroundErrors: string[] = []
  consumer.listen({ onTrouble: (error) => void backgroundErrors.push(String(error)) })
  await produce(server, large(topic))
  const held = await claimed(consumer, 1)
  await recreate(topic)
  await consumer.settle(held.map((lease) => ({ lease, outcome: complete })))
  assert.deepEqual((await readNew(consumer)).toSorted(), expected.toSorted())
  await eventually(
    () => backgroundErrors.some((text) => text.includes(`${topic} was deleted and created again`)),
    'the word',
  )
})

test('what was committed for a deleted topic tells the next owner nothing about the new one', async (t) => {
  const [group, topic] = [freshName('group'), await freshTopic(server, 'inherited')]
  const [first, second] = [await openEngine(urlOf(server, group)), await openEngine(urlOf(server, group))]
  t.after(() => Promise.all([first.close(), second.close()]))
  const consumer = await consume(first, topic)
  await produce(server, large(topic))
  const held = await claimed(consumer, 1)
  await recreate(topic)
  // It has not noticed: what it settles is committed under the name, behind unread records of the new topic.
  await consumer.settle(held.map((lease) => ({ lease, outcome: complete })))
  await first.close()
  await eventually(async () => (await groupOffsets(server, group)).length > 0, 'the commit of the old owner')
  assert.deepEqual((await second.counts())[topic]?.ready, NEW)
  assert.deepEqual((await readNew(await consume(second, topic))).toSorted(), expected.toSorted())
  await eventually(async () => (await groupOffsets(server, group))[0]?.offset === BigInt(NEW), 'the commit')
})

test('a dead letter of the new topic is listed beside one of the old topic from the same place, whatever was done to that', async (t) => {
  const [group, topic] = [freshName('group'), await freshTopic(server, 'letters')]
  const engine = await openEngine(urlOf(server, group, `&desk=${freshName('desk')}`))
  t.after(() => engine.close())
  const consumer = await consume(engine, topic)
  const listed = async (): Promise<readonly string[]> =>
    (await engine.deadLetters.list({ type: topic, limit: 10 })).map(({ job }) => job.id)
  const bury = async (): Promise<string> => {
    const job = newJob({ type: topic, key: 'k' })
    await eventually(
      () =>
        engine.enqueue([job]).then(
          () => true,
          () => false,
        ),
      'the enqueue',
    )
    const [lease] = await claimed(consumer, 1)
    assert.equal(lease?.job.id, job.id)
    if (lease !== undefined) await consumer.settle([{ lease, outcome: dead }])
    return job.id
  }
  const anew = (): Promise<void> =>
    withAdmin(server, async (admin) => {
      await admin.deleteTopics({ topics: [topic] })
      await eventually(
        () =>
          admin.createTopics({ topics: [topic], partitions: 1, replicas: 1 }).then(
            () => true,
            () => false,
          ),
        'the new topic',
      )
    })
  const first = await bury()
  await anew()
  const second = await bury()
  assert.deepEqual((await listed()).toSorted(), [first, second].toSorted())
  const by = { who: 'ann', reason: 'known' }
  assert.deepEqual(await engine.deadLetters.discard([first, second], by), [true, true])
  await anew()
  assert.deepEqual(await listed(), [])
  const third = await bury()
  assert.deepEqual(await listed(), [third])
})
