/** A paused type is left out of the fetch, and goes on where it was. */
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { defineJob, open } from 'millrace'
import { MemoryPresence } from '../../src/engine/memory-records.ts'
import { KafkaEngine } from '../../src/engines/kafka/engine.ts'
import { parseUrl } from '../../src/engines/kafka/options.ts'
import { UnsupportedError } from '../../src/errors.ts'
import { explainJob } from '../../src/explain/explain.ts'
import { checkHealth, workersOf } from '../../src/observe/health.ts'
import { type Clock, systemClock } from '../../src/time/clock.ts'
import { freshName, freshTopic, groupOffsets, type KafkaServer, kafkaServer } from '../servers/kafka.ts'
import { claimed, complete, eventually, never, openEngine, produce, urlOf } from './kafka-fixtures.ts'

let server: KafkaServer
before(async () => {
  server = await kafkaServer()
})

const by = { who: 'ann', reason: 'the provider is down' }

test('nothing of a paused topic is fetched, other topics go on, and after the pause nothing is missing or doubled', async (t) => {
  const [held, other] = [await freshTopic(server, 'held'), await freshTopic(server, 'other')]
  const engine = await openEngine(urlOf(server, freshName('group')))
  t.after(() => engine.close())
  const types = [held, other].map((type) => ({ type, leaseMs: 600_000 }))
  let isPaused = true
  const consumer = await engine.consume({ types, worker: 'w', isPaused: (type) => isPaused && type === held })
  const values = ['0', '1', '2', '3', '4']
  await produce(
    server,
    values.flatMap((value) => [held, other].map((topic) => ({ topic, value }))),
  )
  // The claim itself would take records of both: what it does not get was not fetched.
  const first = await claimed(consumer, 5)
  assert.deepEqual(
    first.map(({ job }) => [job.type, job.payload]),
    values.map((value) => [other, value]),
  )
  await consumer.settle(first.map((lease) => ({ lease, outcome: complete })))
  assert.deepEqual(await consumer.claim({ max: 5, waitMs: 1_200, signal: never }), [])
  assert.deepEqual(await engine.counts(), {
    [held]: { ready: 5, delayed: 0, inProgress: 0, completed: 0, dead: 0 },
    [other]: { ready: 0, delayed: 0, inProgress: 0, completed: 5, dead: 0 },
  })
  isPaused = false
  const second = await claimed(consumer, 5)
  assert.deepEqual(
    second.map(({ job }) => [job.type, job.payload]),
    values.map((value) => [held, value]),
  )
  await consumer.settle(second.map((lease) => ({ lease, outcome: complete })))
  assert.deepEqual(await consumer.claim({ max: 5, waitMs: 0, signal: never }), [], 'a record came twice')
})

test('a claim that leaves a type out does not wake for its retries', async (t) => {
  const [held, other] = [await freshTopic(server, 'held'), await freshTopic(server, 'other')]
  let timers = 0
  const clock: Clock = {
    ...systemClock,
    after: (ms, run) => {
      timers += 1
      return systemClock.after(ms, run)
    },
  }
  const engine = await KafkaEngine.connect(parseUrl(urlOf(server, freshName('group'))), { clock, migrate: true })
  t.after(() => engine.close())
  const types = [held, other].map((type) => ({ type, leaseMs: 600_000 }))
  const consumer = await engine.consume({ types, worker: 'w' })
  await produce(server, [{ topic: held, value: '0' }])
  const [lease] = await claimed(consumer, 1)
  assert.ok(lease)
  const error = { name: 'Error', code: null, message: 'no', stack: null }
  await consumer.settle([{ lease, outcome: { kind: 'retry', delayMs: 1, error } }])
  await eventually(async () => (await engine.counts())[held]?.ready === 1, 'that it is due again')
  timers = 0
  assert.deepEqual(await consumer.claim({ max: 1, waitMs: 1_000, signal: never, perType: { [held]: 0 } }), [])
  // Heartbeats and commits have some; a look every millisecond would have hundreds more.
  assert.ok(timers < 100, `${timers} timers in a second`)
  assert.equal((await claimed(consumer, 1))[0]?.attempt, 2)
})

test('a mill with a presence pauses a type of Kafka: workers obey, explain says so, and nobody calls it stuck', async (t) => {
  const type = await freshTopic(server, 'held', 2)
  const presence = new MemoryPresence()
  const group = freshName('group')
  const mill = await open(urlOf(server, group), { presence })
  t.after(() => mill.close())
  const ran: number[] = []
  const job = defineJob({ type, run: ({ payload }) => void ran.push(Number(payload)) })
  const paused: (readonly string[])[] = []
  mill.events.on('worker.paused', ({ types }) => void paused.push(types))
  await mill.work([job])
  await mill.enqueue(job, 0)
  await eventually(() => ran.length === 1, 'the first job')
  assert.equal(await mill.pause(type, by), true)
  assert.equal(await mill.pause(type, by), false)
  await eventually(() => paused.length === 1, 'that the worker has heard of it')
  const settledTo = async () => (await groupOffsets(server, group)).reduce((sum, { offset }) => sum + offset, 0n)
  await eventually(async () => (await settledTo()) === 1n, 'the commit')
  const { id } = await mill.enqueue(job, 1)
  for (let nth = 2; nth < 10; nth += 1) await mill.enqueue(job, nth)
  const { because, text } = await explainJob(mill, id)
  assert.deepEqual([because, text.includes('ann')], ['paused', true], text)
  assert.deepEqual(
    (await mill.paused()).map((one) => [one.type, one.who]),
    [[type, 'ann']],
  )
  const [worker] = await mill.workers()
  assert.deepEqual(
    worker?.types[0]?.holds?.map(({ partition }) => partition),
    [0, 1],
  )
  assert.equal(
    worker?.types[0]?.holds?.reduce((sum, { lag }) => sum + lag, 0),
    9,
  )
  const health = await checkHealth(mill, workersOf(mill.engine))
  assert.deepEqual([health.status, health.reasons], ['healthy', []])
  assert.deepEqual(ran, [0])
  assert.equal(await settledTo(), 1n, 'nothing is committed past')
  assert.equal(await mill.resume(type, by), true)
  await eventually(() => ran.length === 10, 'the rest')
  assert.deepEqual(
    ran.toSorted((a, b) => a - b),
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
  )
  const audit = await mill.engine.deadLetters?.audit({ limit: 10 })
  assert.deepEqual(
    audit?.map(({ action, type: of }) => [action, of]),
    [
      ['resume', type],
      ['pause', type],
    ],
  )
})

test('without a presence a pause is refused, and says what to add', async (t) => {
  const mill = await open(urlOf(server, freshName('group')))
  t.after(() => mill.close())
  for (const call of [() => mill.pause('held'), () => mill.resume('held'), () => mill.paused()])
    await assert.rejects(
      call,
      (error) => error instanceof UnsupportedError && error.message.includes('--presence redis://'),
    )
})
