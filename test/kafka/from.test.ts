import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freshName, freshTopic, kafkaServer } from '../servers/kafka.ts'
import { claimed, complete, consume, eventually, openEngine, produce, urlOf } from './kafka-fixtures.ts'

test('a new group begins with all that there is, or with what comes from now on; one that has begun goes on', async (t) => {
  const server = await kafkaServer()
  const topic = await freshTopic(server)
  await produce(server, [{ topic, value: '"old"' }])
  const first = await openEngine(urlOf(server, freshName('group')))
  t.after(() => first.close())
  const [oldest] = await claimed(await consume(first, topic), 1)
  assert.equal(oldest?.job.payload, '"old"')

  const url = urlOf(server, freshName('group'), '&from=latest')
  const late = await openEngine(url)
  const consumer = await consume(late, topic)
  await produce(server, [{ topic, value: '"new"' }])
  const [lease] = await claimed(consumer, 1)
  assert.ok(lease)
  assert.equal(lease.job.payload, '"new"')
  await consumer.settle([{ lease, outcome: complete }])
  await eventually(async () => (await late.counts())[topic]?.ready === 0, 'nothing waits for it')
  await late.close()

  // Written while the group has no member: it is not passed over.
  await produce(server, [{ topic, value: '"meanwhile"' }])
  const again = await openEngine(url)
  t.after(() => again.close())
  const [next] = await claimed(await consume(again, topic), 1)
  assert.equal(next?.job.payload, '"meanwhile"')
})
