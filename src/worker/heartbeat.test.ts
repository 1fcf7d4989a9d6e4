import assert from 'node:assert/strict'
import { hostname } from 'node:os'
import { test } from 'node:test'
import { Mill } from '../client/mill.ts'
import { presenceOf } from '../engine/capability-checks.ts'
import { packageVersion } from '../engine/package-info.ts'
import type { AtWork, Beat } from '../engine/presence.ts'
import { MemoryEngine } from '../engines/memory/index.ts'
import { defineJob } from '../job/definition.ts'
import { openForTest } from '../testing/open-for-test.ts'
import { TestClock } from '../testing/test-clock.ts'
import { PROCESS_TAG } from './worker-id.ts'

const mail = defineJob({ type: 'mail', run: () => 1 })
const sms = defineJob({ type: 'sms', run: () => 1 })

// D02 D03 D04 D05 D06
test('a worker says in the engine that it lives, at once and every 10 s, without being told to', async () => {
  await using t = await openForTest()
  const startMs = t.clock.nowMs()
  const worker = await t.mill.work([mail, sms], { id: 'w', concurrency: 4 })
  const work: AtWork = {
    host: hostname(),
    pid: process.pid,
    process: PROCESS_TAG,
    startedAtMs: startMs,
    concurrency: 4,
    running: 0,
    ended: { completed: 0, failed: 0 },
    drains: true,
    version: packageVersion(),
    jobs: [],
  }
  const said = { instance: 'w', status: 'RUNNING', lastJobAtMs: null, lag: null, stoppingSinceMs: null, work }
  const beats = async () => await presenceOf(t.mill.engine).list()
  const withoutMemory = ({ work: { memoryBytes = 0, ...rest } = work, ...beat }: Beat) => {
    assert.ok(memoryBytes > 0)
    return { ...beat, work: rest }
  }
  assert.deepEqual((await beats()).map(withoutMemory), [
    { type: 'mail', ...said, atMs: startMs },
    { type: 'sms', ...said, atMs: startMs },
  ])
  await t.clock.advance('25s')
  assert.deepEqual(
    (await beats()).map(({ atMs }) => atMs - startMs),
    [20_000, 20_000],
  )
  await worker.stop()
  assert.deepEqual(await beats(), [])
  assert.deepEqual(await presenceOf(t.mill.engine).seen(), [])
})

// D08
test('a beat tells what runs since when, 20 of a type at most, and when the last one ended', async () => {
  await using t = await openForTest()
  const gate = Promise.withResolvers<void>()
  const slow = defineJob({ type: 'slow', timeout: '1h', run: () => gate.promise })
  await t.mill.work([slow, mail], { id: 'w', concurrency: 30 })
  await t.clock.advance('3s')
  const settled = t.mill.events.next('job.settled')
  await t.mill.enqueue(mail, null)
  await settled
  const endedMs = t.clock.nowMs()
  await t.clock.advance('1s')
  const sinceMs = t.clock.nowMs()
  const receipts = await t.mill.enqueueMany(slow, Array(25).fill(null))
  await t.clock.advance('10s')
  const [second, first] = await presenceOf(t.mill.engine).list()
  assert.deepEqual([first?.type, first?.work?.running, first?.work?.jobs.length], ['slow', 25, 20])
  const [job] = first?.work?.jobs ?? []
  assert.deepEqual([job?.attempt, job?.startedAtMs], [1, sinceMs])
  assert.ok(receipts.some(({ id }) => id === job?.id))
  assert.deepEqual([second?.lastJobAtMs, second?.work?.running], [endedMs, 0])
  gate.resolve()
})

// D07 X155
test('one that stops says so until it has stopped', async () => {
  await using t = await openForTest()
  const gate = Promise.withResolvers<void>()
  const slow = defineJob({ type: 'slow', timeout: '1h', run: () => gate.promise })
  const started = t.mill.events.next('job.started')
  const worker = await t.mill.work([slow], { drain: '10m' })
  await t.mill.enqueue(slow, null)
  await started
  const sinceMs = t.clock.nowMs()
  const stopped = worker.stop()
  await t.clock.advance('125s')
  const [beat] = await presenceOf(t.mill.engine).list()
  assert.deepEqual([beat?.status, beat?.stoppingSinceMs, beat?.atMs], ['SHUTTING_DOWN', sinceMs, sinceMs + 120_000])
  assert.deepEqual(
    (await t.mill.workers()).map(({ condition, running }) => [condition, running]),
    [['overdue', 1]],
  )
  gate.resolve()
  await stopped
  assert.deepEqual(await t.mill.workers(), [])
})

/** Like a store that is unreachable for a while. */
function failing(clock: TestClock, fail: () => Promise<void>): { engine: MemoryEngine; said: Beat[] } {
  const engine = new MemoryEngine({ clock })
  const said: Beat[] = []
  const remove = (): Promise<never> => fail().then(() => assert.fail())
  return { engine: Object.assign(engine, { records: { ...engine.records, put: fail, remove } }), said }
}

for (const [how, fail] of [
  ['fails', () => Promise.reject(new Error('away'))],
  ['hangs', () => new Promise<never>(() => {})],
] as const) {
  test(`a presence that ${how} holds up no job beyond the first second, and is told once`, async () => {
    const clock = new TestClock()
    const { engine } = failing(clock, fail)
    const mill = new Mill(engine, { clock })
    const errors: string[] = []
    mill.events.on('worker.error', ({ during }) => errors.push(during))
    const settled = mill.events.next('job.settled')
    await mill.enqueue(mail, null)
    const working = mill.work([mail])
    await clock.advance('1s')
    assert.equal((await settled).outcome.kind, 'complete')
    await clock.advance('65s')
    const worker = await working
    const stopping = worker.stop()
    await clock.advance('10s')
    await stopping
    assert.deepEqual(errors, ['presence'])
    await mill.close()
    assert.equal(clock.waiting, 0)
  })
}
