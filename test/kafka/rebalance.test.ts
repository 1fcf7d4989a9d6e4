/** What the engine does while the group is being shared out anew, on a real broker. */
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { setTimeout as pass } from 'node:timers/promises'
import { freshName, freshTopic, groupOffsets, type KafkaServer, kafkaServer } from '../servers/kafka.ts'
import {
  briefUrlOf,
  claimed,
  complete,
  consume,
  eventually,
  never,
  openEngine,
  produce,
  SESSION_MS,
  startHolder,
  urlOf,
} from './kafka-fixtures.ts'

let server: KafkaServer
before(async () => {
  server = await kafkaServer()
})

test('while the group waits for a silent member, the others claim, settle and commit, and repeat nothing', async (t) => {
  const group = freshName('group')
  const topic = await freshTopic(server, 'waiting', 4)
  const engine = await openEngine(briefUrlOf(server, group))
  t.after(() => engine.close())
  const consumer = await consume(engine, topic)
  // It is missed only after its own session, much later than ours would be over, and it is woken before.
  const silent = startHolder(urlOf(server, group), topic)
  t.after(() => silent.end())
  await silent.heard('ready')
  silent.process.kill('SIGSTOP')
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
  const held = await consumer.claim({ max: 2, waitMs: 20_000, signal: never })
  assert.ok(held.length > 0, 'nothing could be claimed while the group waited')
  assert.deepEqual(await consumer.settle(held.map((lease) => ({ lease, outcome: complete }))), [])
  const sum = async (): Promise<bigint> =>
    (await groupOffsets(server, group)).reduce((total, { offset }) => total + offset, 0n)
  await eventually(async () => (await sum()) === BigInt(held.length), 'the commit', 20_000)
  assert.equal(isShared, false, 'the group did not wait, so nothing was shown')
  silent.tell('leave')
  silent.process.kill('SIGCONT')
  await silent.heard('left')
  const second = await joining
  const ids = held.map(({ job }) => job.id)
  const claimMore = async (): Promise<void> => {
    const claims = await Promise.all([consumer, second].map((one) => claimed(one, 4, 500)))
    ids.push(...claims.flat().map(({ job }) => job.id))
  }
  await eventually(async () => {
    await claimMore()
    return ids.length >= 4
  }, 'the records of all partitions')
  // Whatever comes twice has time to show itself.
  await claimMore()
  assert.deepEqual(
    ids.sort(),
    [0, 1, 2, 3].map((partition) => `${topic}:${partition}:0`),
  )
})
