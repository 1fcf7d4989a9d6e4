/** Starts that are counted though their process dies at once, on a real broker. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { decodeProgress } from '../../src/engines/kafka/commit-metadata.ts'
import { KafkaLease } from '../../src/engines/kafka/leases.ts'
import { freshName, freshTopic, groupOffsets, kafkaServer } from '../servers/kafka.ts'
import {
  boom,
  briefUrlOf,
  claimed,
  complete,
  consume,
  never,
  openEngine,
  produce,
  SESSION_MS,
  startHolder,
  urlOf,
} from './kafka-fixtures.ts'

interface Deadly {
  readonly url: string
  readonly topic: string
  readonly deaths: number
}

/** Processes claim the record and die at once, one after another. All starts but the first are counted. */
async function expectCounted(t: TestContext, { url, topic, deaths }: Deadly): Promise<void> {
  const attempts: number[] = []
  for (let turn = 0; turn < deaths; turn += 1) {
    const holder = startHolder(url, topic)
    t.after(() => holder.end())
    await holder.heard('ready')
    holder.tell('claim-and-die')
    const { attempts: told } = await holder.heard('claimed')
    attempts.push(...(Array.isArray(told) ? told : []))
  }
  const [first = 0, second = 0] = attempts
  assert.equal(first, 1)
  assert.ok(second === 1 || second === 2, attempts.join())
  assert.deepEqual(
    attempts.slice(1),
    Array.from({ length: deaths - 1 }, (_, index) => second + index),
  )
}

// X153
test('of starts that kill their process at once, the first alone may be forgotten', async (t) => {
  const server = await kafkaServer()
  const group = freshName('group')
  const topic = await freshTopic(server, 'poison')
  await produce(server, [{ topic, key: 'bad', value: '1' }])
  await expectCounted(t, { url: briefUrlOf(server, group), topic, deaths: 4 })
})

test('a start after a failure is stored before the handler begins', async (t) => {
  const server = await kafkaServer()
  const group = freshName('group')
  const topic = await freshTopic(server, 'stored')
  await produce(server, [{ topic, value: '1' }])
  const engine = await openEngine(urlOf(server, group))
  t.after(() => engine.close())
  const consumer = await consume(engine, topic)
  for (const start of [1, 2, 3]) {
    const [lease] = await claimed(consumer, 1)
    assert.equal(lease?.attempt, start)
    if (lease === undefined) return
    if (start > 1) {
      const [committed] = await groupOffsets(server, group)
      const { retryStates } = decodeProgress(0, committed?.metadata ?? null)
      assert.equal(new Map(retryStates).get(0)?.starts, start)
    }
    await consumer.settle([{ lease, outcome: { kind: 'retry', delayMs: 0, error: boom } }])
  }
})

test("a process that stood still while a start was stored does not hand it out: its partition may be another's", async (t) => {
  const server = await kafkaServer()
  const topic = await freshTopic(server, 'paused')
  await produce(server, [{ topic, value: '1' }])
  const engine = await openEngine(briefUrlOf(server, freshName('group')))
  t.after(() => engine.close())
  const consumer = await consume(engine, topic)
  const [first] = await claimed(consumer, 1)
  assert.ok(first !== undefined)
  await consumer.settle([{ lease: first, outcome: { kind: 'retry', delayMs: 0, error: boom } }])
  const claiming = consumer.claim({ max: 1, waitMs: 1, signal: never })
  // The commit is on its way now, and answered while this process hears nothing.
  await new Promise((resolve) => setImmediate(resolve))
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, SESSION_MS + 500)
  assert.deepEqual(await claiming, [])
  // It is put off, and not lost.
  const [again] = await claimed(consumer, 1)
  assert.equal(again?.job.id, first.job.id)
})

test('what an orderly stop leaves is handed out without a commit before it, as often as it comes to one', async (t) => {
  const server = await kafkaServer()
  const group = freshName('group')
  const topic = await freshTopic(server, 'left')
  await produce(
    server,
    Array.from({ length: 60 }, (_, index) => ({ topic, value: String(index) })),
  )
  const ids = new Set<string>()
  for (let turn = 0; turn < 3; turn += 1) {
    const engine = await openEngine(urlOf(server, group))
    t.after(() => engine.close())
    const consumer = await consume(engine, topic)
    const leases = await claimed(consumer, 20)
    for (const lease of leases) {
      assert.ok(lease instanceof KafkaLease)
      assert.equal(lease.owned.needsStoredStart(lease.held.offset, lease.attempt), false)
      ids.add(lease.job.id)
    }
    await consumer.settle(leases.map((lease) => ({ lease, outcome: complete })))
    await engine.close()
    const [committed] = await groupOffsets(server, group)
    const position = Number(committed?.offset)
    assert.equal(decodeProgress(position, committed?.metadata ?? null).doubtfulBelow, position)
  }
  assert.equal(ids.size, 60)
})

test('also after an orderly stop, the first of the starts that kill their process alone may be forgotten', async (t) => {
  const server = await kafkaServer()
  const group = freshName('group')
  const topic = await freshTopic(server, 'stopped')
  await produce(server, [
    { topic, key: 'good', value: '1' },
    { topic, key: 'bad', value: '2' },
  ])
  const engine = await openEngine(briefUrlOf(server, group))
  t.after(() => engine.close())
  const consumer = await consume(engine, topic)
  const [good] = await claimed(consumer, 1)
  assert.ok(good !== undefined)
  await consumer.settle([{ lease: good, outcome: complete }])
  await engine.close()
  await expectCounted(t, { url: briefUrlOf(server, group), topic, deaths: 3 })
})
