import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Events, type JobFacts } from '../../events.ts'
import { defineJob } from '../../job/definition.ts'
import { drain } from '../../testing/drain.ts'
import { openForTest } from '../../testing/open-for-test.ts'
import { TestClock } from '../../testing/test-clock.ts'
import { attachStats, type StatsCollector } from './stats.ts'

const error = { name: 'Error', code: null, message: 'x', stack: null }

interface Stage {
  readonly clock: TestClock
  readonly events: Events
  readonly stats: StatsCollector
  complete(times: number, durationMs?: number, type?: string): void
  die(times: number, type?: string): void
  retry(times: number): void
  expire(times: number): void
}

/** Ends as workers and the reaper tell them, without any. */
function stage(): Stage {
  const clock = new TestClock()
  const events = new Events()
  const stats = attachStats({ events, engine: { counts: async () => ({}) } }, { clock })
  const repeat = (times: number, emit: () => void): void => Array.from({ length: times }).forEach(emit)
  const facts = (type: string): JobFacts => {
    return { id: 'x', type, priority: 5, attempts: 3, tenant: null, runAtMs: 0, createdAtMs: 0 }
  }
  const end = { attempt: 1, worker: 'w', started: true }
  const settle = (type: string, outcome: 'dead' | 'retry', times: number): void =>
    repeat(times, () => {
      const kind =
        outcome === 'dead' ? ({ kind: 'dead', error } as const) : ({ kind: 'retry', delayMs: 0, error } as const)
      events.emit('job.settled', { ...end, job: facts(type), durationMs: 7, outcome: kind })
    })
  return {
    clock,
    events,
    stats,
    complete: (times, durationMs = 1, type = 't') =>
      repeat(times, () => {
        const outcome = { kind: 'complete', result: 'null', durationMs } as const
        events.emit('job.settled', { ...end, job: facts(type), durationMs, outcome })
      }),
    die: (times, type = 't') => settle(type, 'dead', times),
    retry: (times) => settle('t', 'retry', times),
    expire: (times) =>
      repeat(times, () => {
        events.emit('lease.reaped', { ...end, job: facts('t'), outcome: { kind: 'retry', delayMs: 0, error } })
      }),
  }
}

// B145 B151
test('the rate is in jobs per minute, over an hour by default', async () => {
  const { stats, complete, clock } = stage()
  complete(60)
  assert.equal((await stats.collect()).windowMs, 3_600_000)
  assert.equal((await stats.collect()).processingRate, 1)
  assert.equal((await stats.collect(600_000)).processingRate, 6)
  await clock.advance('30m')
  assert.equal((await stats.collect(600_000)).processingRate, 0)
  assert.equal((await stats.collect()).processingRate, 1)
  await clock.advance('32m')
  assert.equal((await stats.collect()).processingRate, 0, 'an hour later it is forgotten')
  for (const windowMs of [0, -1, Number.NaN, 3_600_001]) {
    await assert.rejects(stats.collect(windowMs), { code: 'ERR_OPTION_INVALID' })
  }
})

test('an hour is kept by the minute, and what is older is forgotten while it goes on', async () => {
  const { stats, complete, clock } = stage()
  for (let minute = 0; minute < 150; minute += 1) {
    complete(1)
    await clock.advance('1m')
  }
  assert.equal((await stats.collect()).completed, 60)
  assert.equal((await stats.collect(1_800_000)).completed, 30)
})

// B146 X083
test('the success rate is of jobs that ended, the failure rate of attempts', async () => {
  const { stats, complete, die, retry } = stage()
  const empty = await stats.collect()
  assert.deepEqual([empty.successRate, empty.attemptFailureRate, empty.processed], [1, 0, 0])
  complete(19)
  die(1)
  const found = await stats.collect()
  assert.deepEqual([found.successRate, found.processed], [0.95, 20])
  retry(20)
  const retried = await stats.collect()
  assert.equal(retried.successRate, 0.95, 'a job that is tried again has not ended')
  assert.equal(retried.attemptFailureRate, 21 / 40)
})

// B148 X084
test('latencies are of attempts that completed', async () => {
  const { stats, complete, die } = stage()
  for (let ms = 1; ms <= 100; ms += 1) complete(1, ms)
  die(50)
  const { latencyP50Ms, latencyP95Ms, latencyP99Ms } = await stats.collect()
  assert.deepEqual([latencyP50Ms, latencyP95Ms, latencyP99Ms], [50, 95, 99])
})

// B150 X085
test('leases that ran out are counted per minute', async () => {
  const { stats, expire } = stage()
  expire(2)
  assert.equal((await stats.collect()).leaseExpiryRate, 2 / 60)
  assert.equal((await stats.collect(60_000)).leaseExpiryRate, 2)
  assert.equal((await stats.collect()).attemptFailureRate, 1)
})

test('every type has stats of its own', async () => {
  const { stats, complete, die } = stage()
  complete(3, 10, 'quick')
  complete(1, 900, 'slow')
  die(1, 'slow')
  const { byType, successRate } = await stats.collect()
  assert.equal(successRate, 0.8)
  assert.deepEqual([byType.quick?.successRate, byType.slow?.successRate], [1, 0.5])
  assert.deepEqual([byType.quick?.latencyP95Ms, byType.slow?.latencyP95Ms], [10, 900])
  assert.deepEqual([...stats.endedByType().keys()], ['quick', 'slow'])
  stats.detach()
  complete(1, 1, 'late')
  assert.equal((await stats.collect()).processed, 5)
})

const good = defineJob({ type: 'good', run: () => 1 })
const bad = defineJob({ type: 'bad', attempts: 1, run: () => Promise.reject(new Error('never')) })

// B07 B142 B143 B144 B147 X086
test('what stands in the store: queued, due and delayed, in progress, dead, and the age of what is due', async () => {
  await using t = await openForTest()
  const stats = attachStats(t.mill, { clock: t.clock })
  assert.equal((await stats.collect()).queueAgeMs, 0)
  await t.mill.enqueue(bad, null)
  await drain(t.mill, [bad])
  await t.mill.enqueueMany(good, [1, 2], { delay: '1m' })
  await t.clock.advance('59s')
  assert.equal((await stats.collect()).queueAgeMs, 0, 'what is due later has no age')
  await t.clock.advance('11s')
  await t.mill.enqueueMany(good, [3, 4, 5], { delay: '1h' })
  const consumer = await t.mill.engine.consume({ types: [{ type: 'good', leaseMs: 60_000 }], worker: 'w' })
  await consumer.claim({ max: 1, waitMs: 0, signal: new AbortController().signal })
  const found = await stats.collect()
  assert.deepEqual(found.deadByType, { bad: 1 })
  assert.partialDeepStrictEqual(found, {
    queueDepth: 4,
    due: 1,
    delayed: 3,
    inProgressCount: 1,
    deadLetterCount: 1,
    queueAgeMs: 10_000,
    successRate: 0,
    processed: 1,
  })
})

test('an engine that cannot say how long jobs wait leaves the age unknown; one that hangs is given up', async () => {
  const { stats } = stage()
  assert.equal((await stats.collect()).queueAgeMs, null)
  const clock = new TestClock()
  const engine = { counts: () => new Promise<never>(() => {}) }
  const hung = assert.rejects(attachStats({ events: new Events(), engine }, { clock }).collect(), {
    code: 'ERR_WAIT_TIMEOUT',
  })
  await clock.advance('1s')
  await hung
})
