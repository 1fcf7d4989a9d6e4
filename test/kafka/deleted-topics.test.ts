/** Topics that somebody deletes while they are used are created again. */
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { open } from '../../src/client/mill.ts'
import { parseUrl, statesTopicOf } from '../../src/engines/kafka/options.ts'
import { Topics } from '../../src/engines/kafka/topics.ts'
import { defineJob } from '../../src/job/definition.ts'
import {
  endOffsets,
  freshName,
  freshTopic,
  groupOffsets,
  type KafkaServer,
  kafkaServer,
  withAdmin,
} from '../servers/kafka.ts'
import { ann, stageDesk } from './desk-stage.ts'
import { eventually, produce, urlOf } from './kafka-fixtures.ts'

let server: KafkaServer
before(async () => {
  server = await kafkaServer()
})

async function deleteTopic(topic: string): Promise<void> {
  await withAdmin(server, (admin) => admin.deleteTopics({ topics: [topic] }))
  const isGone = async (): Promise<boolean> => !(await withAdmin(server, (admin) => admin.listTopics())).includes(topic)
  await eventually(isGone, `the end of ${topic}`)
}

test('the topic of dead letters, deleted under a worker, is created again for the next letter', async (t) => {
  const stage = await stageDesk(t, server)
  const { topic, dlq, group } = stage
  const isSettled = async (offset: bigint) => (await groupOffsets(server, group))[0]?.offset === offset
  await produce(server, [{ topic, value: '1' }])
  await stage.work(() => {
    throw new Error('never')
  })
  await eventually(() => isSettled(1n), 'the first letter')
  await deleteTopic(dlq)
  await produce(server, [{ topic, value: '2' }])
  await eventually(() => isSettled(2n), 'the second letter')
  assert.deepEqual(await endOffsets(server, dlq), [1n])
})

test('a topic of jobs that was deleted is created again by the next job, which is stored', async (t) => {
  const topic = freshName('orders')
  const mill = await open(urlOf(server, freshName('group'), '&partitions=1'))
  t.after(() => mill.close())
  const job = defineJob({ type: topic })
  await mill.enqueue(job, 1)
  await deleteTopic(topic)
  await mill.enqueue(job, 2)
  assert.deepEqual(await endOffsets(server, topic), [1n])
})

test('a topic that was deleted under its worker is created again, said so, and read', async (t) => {
  const topic = await freshTopic(server, 'orders')
  const mill = await open(urlOf(server, freshName('group'), '&partitions=2'))
  t.after(() => mill.close())
  const [ran, backgroundErrors]: [unknown[], string[]] = [[], []]
  mill.events.on('worker.error', ({ error }) => void backgroundErrors.push(String(error)))
  await mill.work([defineJob({ type: topic, run: ({ payload }) => void ran.push(payload) })])
  await deleteTopic(topic)
  await eventually(
    () => backgroundErrors.some((text) => text.includes(`'${topic}' was deleted and is created again`)),
    'the word',
  )
  await produce(server, [
    { topic, partition: 0, value: '7' },
    { topic, partition: 1, value: '8' },
  ])
  // The producer may send a record twice where a partition was not ready yet.
  await eventually(() => new Set(ran).size === 2, 'the records of the new topic')
  assert.deepEqual([...new Set(ran)].toSorted(), [7, 8])
})

test('a topic that is deleted between two calls of one look is created again by a later look', async (t) => {
  const topic = await freshTopic(server, 'orders')
  const mill = await open(urlOf(server, freshName('group')))
  t.after(() => mill.close())
  const ran: unknown[] = []
  const deleted = Promise.withResolvers<void>()
  const { listReading } = Topics.prototype
  let looks = 0
  let isLost = false
  t.mock.method(
    Topics.prototype,
    'listReading',
    async function (this: Topics, ...given: Parameters<typeof listReading>) {
      const listed = await listReading.apply(this, given)
      looks += 1
      // The first look that creates the topic again is told of it, and loses it before its next call.
      if (looks > 1 && listed.includes(topic) && !isLost) {
        isLost = true
        await deleteTopic(topic)
        deleted.resolve()
      }
      return listed
    },
  )
  await mill.work([defineJob({ type: topic, run: ({ payload }) => void ran.push(payload) })])
  await deleteTopic(topic)
  await deleted.promise
  const isThere = async (): Promise<boolean> => (await withAdmin(server, (admin) => admin.listTopics())).includes(topic)
  await eventually(isThere, `${topic} again`)
  await produce(server, [{ topic, partition: 0, value: '7' }])
  await eventually(() => ran.length > 0, 'the record of the new topic')
})

test('the topic of the states, deleted under a desk, is created again for its next act', async (t) => {
  const stage = await stageDesk(t, server)
  const { topic } = stage
  await stage.bury(['a', 'b'])
  const desk = await stage.openDesk()
  await desk.discard({ topic, offset: 0 }, ann)
  await deleteTopic(statesTopicOf(parseUrl(stage.url())))
  await desk.discard({ topic, offset: 1 }, ann)
  const { letters } = await desk.list({ topic, state: 'every' })
  assert.deepEqual(
    letters.map(({ state }) => state),
    ['pending', 'discarded'],
  )
})
