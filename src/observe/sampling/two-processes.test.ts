/** The charts are about the store: who serves them, who works and who enqueues may be three processes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Mill, open } from '../../client/mill.ts'
import { Events } from '../../events.ts'
import { defineJob } from '../../job/definition.ts'
import { TestClock } from '../../testing/test-clock.ts'
import { type HistoryPoint, startSampling } from './sampler.ts'

const SECONDS_MAX = 120

/** Samples `engine` as a process with these events does. Answers the first point that is as it should be. */
function sampling(clock: TestClock, { engine }: Mill, events: Events) {
  const sampler = startSampling({ engine, events }, { clock })
  const seen: HistoryPoint[] = []
  sampler.subscribe(({ point }) => seen.push(point))
  return {
    seen,
    close: () => sampler.close(),
    async until(what: string, isThere: (points: readonly HistoryPoint[]) => boolean): Promise<void> {
      for (let second = 0; second < SECONDS_MAX; second += 1) {
        if (isThere(seen)) return
        for (let tick = 0; tick < 10; tick += 1) await clock.advance(100)
      }
      assert.fail(`${what}: ${JSON.stringify(seen.slice(-10))}`)
    },
  }
}

/** The events of a process that works and never enqueues. */
function withoutEnqueuing({ events }: Mill): Events {
  const others = new Events()
  events.attach({
    'worker.started': (event) => others.emit('worker.started', event),
    'worker.stopped': (event) => others.emit('worker.stopped', event),
    'job.started': (event) => others.emit('job.started', event),
    'job.settled': (event) => others.emit('job.settled', event),
  })
  return others
}

/** Over all points: rates are means of steps of two seconds. */
const sum = (points: readonly HistoryPoint[], of: 'completedPerSecond' | 'enqueuedPerSecond' | 'failedPerSecond') =>
  Math.round(points.reduce((total, point) => total + (point[of] ?? 0) * 2, 0))

test('a process that works tells what others enqueue', async () => {
  const clock = new TestClock()
  await using mill = await open('memory:', { clock })
  const greet = defineJob({ type: 'greet', removeOnComplete: true, run: () => 'hello' })
  const chart = sampling(clock, mill, withoutEnqueuing(mill))
  await mill.work([greet])
  await chart.until('two steps', (points) => points.length >= 2)
  await mill.enqueueMany(greet, [1, 2, 3, 4, 5, 6])
  await mill.enqueueMany(greet, [7, 8], { delay: '1h' })
  await chart.until('eight enqueued', (points) => sum(points, 'enqueuedPerSecond') === 8)
  assert.equal(sum(chart.seen, 'completedPerSecond'), 6)
  chart.close()
})

test('a process that works tells what a worker of another process does too', async () => {
  const clock = new TestClock()
  await using mill = await open('memory:', { clock })
  const here = defineJob({ type: 'here', run: () => 1 })
  const there = defineJob({ type: 'there', run: () => 2 })
  const events = new Events()
  const chart = sampling(clock, mill, events)
  const local = await mill.work([here])
  events.emit('worker.started', { worker: local.id, types: ['here'], concurrency: 10 })
  await mill.work([there])
  await chart.until('two steps', (points) => points.length >= 2)
  await mill.enqueueMany(there, [1, 2, 3, 4])
  await chart.until('four completed', (points) => sum(points, 'completedPerSecond') === 4)
  assert.equal(sum(chart.seen, 'enqueuedPerSecond'), 4)
  chart.close()
})

test('a process beside the workers tells of attempts that fail and are tried again', async () => {
  const clock = new TestClock()
  await using mill = await open('memory:', { clock })
  const backoff = { kind: 'fixed', delay: '1s' } as const
  const flaky = defineJob({
    ...{ type: 'flaky', attempts: 3, backoff },
    run: ({ job }) => (job.attempt < 3 ? Promise.reject(new Error('not yet')) : 1),
  })
  const chart = sampling(clock, mill, new Events())
  await mill.work([flaky])
  await chart.until('two steps', (points) => points.length >= 2)
  await mill.enqueueMany(flaky, [1, 2, 3, 4, 5])
  await chart.until('five completed', (points) => sum(points, 'completedPerSecond') === 5)
  await chart.until('ten failed', (points) => sum(points, 'failedPerSecond') === 10)
  await clock.advance('1m')
  assert.equal(sum(chart.seen, 'failedPerSecond'), 10, 'a beat is counted once')
  chart.close()
})

test('a process beside the workers tells of jobs that are removed when they complete', async () => {
  const clock = new TestClock()
  await using mill = await open('memory:', { clock })
  const brief = defineJob({ type: 'brief', removeOnComplete: true, run: () => 1 })
  const kept = defineJob({ type: 'kept', run: () => 1 })
  const chart = sampling(clock, mill, new Events())
  await mill.work([brief, kept])
  await chart.until('two steps', (points) => points.length >= 2)
  const each = async (): Promise<void> => {
    await mill.enqueue(brief, null)
    await mill.enqueue(kept, null)
  }
  for (let second = 0; second < 60; second += 1) {
    await each()
    for (let tick = 0; tick < 10; tick += 1) await clock.advance(100)
  }
  const last = chart.seen.slice(-5)
  for (const { completedPerSecond, enqueuedPerSecond } of last) {
    assert.deepEqual([completedPerSecond?.toFixed(1), enqueuedPerSecond?.toFixed(1)], ['2.0', '2.0'])
  }
  chart.close()
})
