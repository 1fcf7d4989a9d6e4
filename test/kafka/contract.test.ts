/** What the engine relies on the client and the broker for. A new version of either must pass this before it is used. */
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { setTimeout as pass } from 'node:timers/promises'
import * as client from '@platformatic/kafka'
import { decodeProgress } from '../../src/engines/kafka/commit-metadata.ts'
import { createPool } from '../../src/engines/kafka/driver.ts'
import { parseUrl } from '../../src/engines/kafka/options.ts'
import { endOffsets, freshName, freshTopic, groupOffsets, type KafkaServer, kafkaServer } from '../servers/kafka.ts'
import {
  briefUrlOf,
  claimed,
  complete,
  consume,
  eventually,
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

const committedOf = async (group: string): Promise<readonly bigint[]> =>
  (await groupOffsets(server, group)).map(({ offset }) => offset)

test('a partition that moves waits for what runs, longer than a session, and what it finished is not repeated', async (t) => {
  const group = freshName('group')
  const topic = await freshTopic(server, 'drain', 2)
  const both = [0, 1].map((partition) => ({ topic, partition, value: '1' }))
  await produce(server, [...both, ...both])
  const [one, two] = [await openEngine(briefUrlOf(server, group)), await openEngine(urlOf(server, group))]
  t.after(() => Promise.all([one.close(), two.close()]))
  const first = await consume(one, topic)
  const held = await claimed(first, 4)
  assert.equal(held.length, 4)
  const joining = consume(two, topic)
  // The time itself is what is tried: without beats of our own the broker would drop a member that drains so long.
  await pass(SESSION_MS * 1.5)
  assert.deepEqual(await first.settle(held.map((lease) => ({ lease, outcome: complete }))), [])
  const second = await joining
  await eventually(async () => (await committedOf(group)).every((offset) => offset === 2n), 'the commit of the drain')
  await produce(server, both)
  const [mine, moved] = await Promise.all([claimed(first, 1), claimed(second, 1)])
  const ids = [...mine, ...moved].map(({ job }) => job.id).sort()
  assert.deepEqual(ids, [`${topic}:0:2`, `${topic}:1:2`])
  assert.deepEqual(
    [...mine, ...moved].map(({ attempt }) => attempt),
    [1, 1],
  )
})

test('a member that was paused past its session is refused on waking, and changes nothing that its successor did', async (t) => {
  const group = freshName('group')
  const topic = await freshTopic(server, 'zombie')
  await produce(server, [
    { topic, value: '1' },
    { topic, value: '2' },
  ])
  const zombie = startHolder(briefUrlOf(server, group), topic)
  t.after(() => zombie.end())
  await zombie.heard('ready')
  zombie.tell('claim')
  assert.deepEqual((await zombie.heard('claimed')).attempts, [1, 1])
  // A first start is stored a moment after it.
  const areStored = async (): Promise<boolean> => {
    const [committed] = await groupOffsets(server, group)
    return new Map(decodeProgress(0, committed?.metadata ?? null).retryStates).size === 2
  }
  await eventually(areStored, 'the starts')
  zombie.process.kill('SIGSTOP')
  const engine = await openEngine(urlOf(server, group))
  t.after(() => engine.close())
  const consumer = await consume(engine, topic)
  const leases = await claimed(consumer, 2)
  assert.deepEqual(
    leases.map(({ attempt }) => attempt),
    [2, 2],
  )
  assert.deepEqual(await consumer.settle(leases.map((lease) => ({ lease, outcome: complete }))), [])
  await eventually(async () => (await committedOf(group))[0] === 2n, 'the commit of the successor')
  zombie.tell('settle')
  zombie.process.kill('SIGCONT')
  assert.deepEqual((await zombie.heard('settled')).lost, ['revoked', 'revoked'])
  await pass(500)
  assert.deepEqual(await committedOf(group), [2n])
})

// D33 X153
test('after a crash only the failing record comes back, at its time, and its failures are remembered', async (t) => {
  const group = freshName('group')
  const topic = await freshTopic(server, 'crash')
  const records = Array.from({ length: 200 }, (_, n) => ({
    topic,
    key: n === 3 ? 'bad' : `k${n % 7}`,
    value: String(n),
  }))
  await produce(server, records)
  const holder = startHolder(briefUrlOf(server, group), topic)
  t.after(() => holder.end())
  await holder.heard('ready')
  holder.tell('work 199 3 4000')
  const dueMs = Number((await holder.heard('worked')).atMs) + 4_000
  await holder.end()
  assert.deepEqual(await committedOf(group), [3n])
  assert.deepEqual(await endOffsets(server, topic), [200n])
  const engine = await openEngine(urlOf(server, group))
  t.after(() => engine.close())
  const consumer = await consume(engine, topic)
  const [again, ...others] = await claimed(consumer, 1)
  assert.ok(again)
  assert.ok(Date.now() >= dueMs - 1_000, 'it came back before its time')
  assert.deepEqual([again.job.id, again.job.key, again.attempt], [`${topic}:0:3`, 'bad', 4])
  assert.deepEqual(others, [])
  assert.deepEqual(await consumer.claim({ max: 10, waitMs: 500, signal: never() }), [], 'a finished record came back')
  assert.deepEqual(await consumer.settle([{ lease: again, outcome: complete }]), [])
  await engine.counts()
  assert.deepEqual(await committedOf(group), [200n])
})

function never(): AbortSignal {
  return new AbortController().signal
}

test('a connection that fails twice ends no process', async (t) => {
  const pool = createPool(client, parseUrl(server.url))
  t.after(() => pool.close())
  const [host = '', port] = server.address.split(':')
  const connection = await pool.get({ host, port: Number(port) })
  connection.socket.emit('error', new Error('reset'))
  // Nobody but us listens any more, and an error without a listener is thrown.
  connection.socket.emit('error', new Error('reset again'))
  connection.socket.destroy()
})
