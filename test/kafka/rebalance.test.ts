/** What the engine does while the group is being shared out anew, on a real broker. */
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { setTimeout as pass } from 'node:timers/promises'
import { freshName, freshTopic, groupOffsets, type KafkaServer, kafkaServer } from '../servers/kafka.ts'
import { claimed, complete, consume, eventually, openEngine, produce, SESSION_MS, startHolder, urlOf } from './stage.ts'

let server: KafkaServer
before(async () => {
  server = await kafkaServer()
})

test('while the group waits for a dead member, the others claim, settle and commit, and repeat nothing', async (t) => {
  const group = freshName('group')
  const topic = await freshTopic(server, 'waiting', 4)
  const engine = await openEngine(urlOf(server, group))
  t.after(() => engine.close())
  const consumer = await consume(engine, topic)
  // It is missed only after its own session, much later than ours would be over.
  const dying = startHolder(urlOf(server, group).replace(`session=${SESSION_MS}`, `session=${SESSION_MS * 4}`), topic)
  t.after(() => dying.end())
  await dying.heard('ready')
  await dying.end()
  const other = await openEngine(urlOf(server, group))
  t.after(() => other.close())
  let isShared = false
  const joining = consume(other, topic).finally(() => {
    isShared = true
  })
  // The time itself is what is tried: nobody may take us for lost because the group waits for somebody else.
  await pass(SESSION_MS * 1.5)
  await produce(
    server,
    [0, 1, 2, 3].map((partition) => ({ topic, partition, value: '1' })),
  )
  const held = await claimed(consumer, 2, 1_500)
  assert.ok(held.length > 0, 'nothing could be claimed while the group waited')
  assert.deepEqual(await consumer.settle(held.map((lease) => ({ lease, outcome: complete }))), [])
  const sum = async (): Promise<bigint> =>
    (await groupOffsets(server, group)).reduce((total, { offset }) => total + offset, 0n)
  await eventually(async () => (await sum()) === BigInt(held.length), 'the commit', 1_500)
  assert.equal(isShared, false, 'the group did not wait, so nothing was shown')
  const second = await joining
  const rest = (await Promise.all([claimed(consumer, 4, 3_000), claimed(second, 4, 3_000)])).flat()
  const ids = [...held, ...rest].map(({ job }) => job.id).sort()
  assert.deepEqual(
    ids,
    [0, 1, 2, 3].map((partition) => `${topic}:${partition}:0`),
  )
})
