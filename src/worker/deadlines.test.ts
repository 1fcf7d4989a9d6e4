import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { type Mill, open } from '../client/mill.ts'
import type { MillEvents } from '../events.ts'
import { defineJob } from '../job/definition.ts'
import { TestClock } from '../testing/test-clock.ts'

interface Stage {
  readonly mill: Mill
  readonly clock: TestClock
  readonly settled: MillEvents['job.settled'][]
}

async function staged(t: { after(run: () => Promise<void>): void }): Promise<Stage> {
  const clock = new TestClock()
  const mill = await open('memory:', { random: () => 0, clock })
  const settled: MillEvents['job.settled'][] = []
  mill.events.on('job.settled', (event) => void settled.push(event))
  t.after(() => mill.close())
  return { mill, clock, settled }
}

const kinds = (settled: readonly MillEvents['job.settled'][]) => settled.map(({ outcome }) => outcome.kind)

async function turns(count = 20): Promise<void> {
  for (let left = count; left > 0; left -= 1) await turn()
}

// A09 A43 B88
test('a handler beyond its timeout fails at once, its slot is free, and its late answer is ignored', async (t) => {
  const { mill, clock, settled } = await staged(t)
  const reasons: unknown[] = []
  const rejections: ((error: Error) => void)[] = []
  const job = defineJob({
    type: 'hangs',
    timeout: 200,
    attempts: 1,
    run({ signal, payload }) {
      if (payload !== 'hang') return 'quick'
      signal.addEventListener('abort', () => reasons.push(signal.reason))
      return new Promise((_resolve, reject) => rejections.push(reject))
    },
  })
  await mill.enqueue(job, 'hang')
  const next = await mill.enqueue(job, 'next')
  const worker = await mill.work([job], { concurrency: 1 })
  await clock.advance(199)
  assert.equal(settled.length, 0)
  await clock.advance(1)
  await turns()
  assert.deepEqual(kinds(settled), ['dead', 'complete'])
  assert.equal(settled[0]?.durationMs, 200)
  assert.ok(settled[0]?.outcome.kind === 'dead' && settled[0].outcome.error.code === 'ERR_JOB_TIMEOUT')
  assert.equal(settled[1]?.job.id, next.id)
  assert.equal(Reflect.get(Object(reasons[0]), 'code'), 'ERR_JOB_TIMEOUT')
  assert.equal(worker.running, 0)
  const lost: unknown[] = []
  mill.events.on('lease.lost', (event) => lost.push(event))
  for (const reject of rejections) reject(new Error('late'))
  await turns()
  assert.equal(settled.length, 2)
  assert.deepEqual(lost, [])
})

// A09
test('the default timeout is five minutes', async (t) => {
  const { mill, clock, settled } = await staged(t)
  const job = defineJob({ type: 'hangs', run: () => new Promise(() => {}) })
  await mill.enqueue(job, null)
  await mill.work([job])
  await clock.advance(299_999)
  assert.equal(settled.length, 0)
  await clock.advance(1)
  assert.deepEqual(kinds(settled), ['retry'])
})

// X025
test('the timeout is the one of the job, otherwise of its type, otherwise five minutes, and aborts the signal', async (t) => {
  const { mill, clock, settled } = await staged(t)
  const aborted: unknown[] = []
  const run = ({ payload, signal }: { payload: unknown; signal: AbortSignal }) =>
    new Promise<never>(() => {
      signal.addEventListener('abort', () => aborted.push([payload, Reflect.get(signal.reason, 'code')]))
    })
  const timed = defineJob({ type: 'timed', timeout: '2m', attempts: 1, run })
  const untimed = defineJob({ type: 'untimed', attempts: 1, run })
  await mill.enqueue(timed, 'own', { timeout: '1m' })
  await mill.enqueue(timed, 'of the type')
  await mill.enqueue(untimed, 'default')
  await mill.work([timed, untimed])
  await clock.advance('10m')
  assert.deepEqual(
    settled.map(({ durationMs }) => durationMs),
    [60_000, 120_000, 300_000],
  )
  assert.deepEqual(aborted, [
    ['own', 'ERR_JOB_TIMEOUT'],
    ['of the type', 'ERR_JOB_TIMEOUT'],
    ['default', 'ERR_JOB_TIMEOUT'],
  ])
})

test('jobs with different timeouts each end at their own', async (t) => {
  const { mill, clock, settled } = await staged(t)
  const job = defineJob({ type: 'hangs', attempts: 1, run: () => new Promise(() => {}) })
  for (const timeout of [300, 100, 200]) await mill.enqueue(job, null, { timeout })
  await mill.work([job])
  await clock.advance(1_000)
  assert.deepEqual(
    settled.map(({ durationMs }) => durationMs),
    [100, 200, 300],
  )
})

test('a handler is told of its timeout before a job that was claimed ahead starts in its slot', async (t) => {
  const { mill, clock, settled } = await staged(t)
  const seen: string[] = []
  const job = defineJob({
    type: 'hangs-once',
    timeout: 20,
    attempts: 1,
    run({ signal, payload }) {
      if (typeof payload === 'number') return undefined
      seen.push(`${payload} starts`)
      if (payload === 'next') return undefined
      signal.addEventListener('abort', () => seen.push('hang is told'))
      return new Promise(() => {})
    },
  })
  const worker = await mill.work([job], { concurrency: 1 })
  // Jobs are claimed ahead once the worker has seen that they are quick.
  await mill.enqueueMany(job, [...Array(100).keys()])
  while (settled.length < 100) await turn()
  await mill.enqueueMany(job, ['hang', 'next'])
  while (worker.running === 0) await turn()
  await clock.advance(20)
  await turns()
  assert.deepEqual(seen, ['hang starts', 'hang is told', 'next starts'])
})
