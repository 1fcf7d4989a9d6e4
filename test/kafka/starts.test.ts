/** Starts that are counted though their process dies at once, on a real broker. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeProgress } from '../../src/engines/kafka/commit-metadata.ts'
import { freshName, freshTopic, groupOffsets, kafkaServer } from '../servers/kafka.ts'
import {
  boom,
  briefUrlOf,
  claimed,
  consume,
  never,
  openEngine,
  produce,
  SESSION_MS,
  startHolder,
  urlOf,
} from './kafka-fixtures.ts'

// X153
test('of starts that kill their process at once, the first alone may be forgotten', async (t) => {
  const server = await kafkaServer()
  const group = freshName('group')
  const topic = await freshTopic(server, 'poison')
  await produce(server, [{ topic, key: 'bad', value: '1' }])
  const attempts: number[] = []
  for (let turn = 0; turn < 4; turn += 1) {
    const holder = startHolder(briefUrlOf(server, group), topic)
    t.after(() => holder.end())
    await holder.heard('ready')
    holder.tell('claim-and-die')
    const { attempts: told } = await holder.heard('claimed')
    attempts.push(...(Array.isArray(told) ? told : []))
  }
  const [first = 0, second = 0] = attempts
  assert.equal(first, 1)
  assert.ok(second === 1 || second === 2, attempts.join())
  assert.deepEqual(attempts.slice(1), [second, second + 1, second + 2])
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
