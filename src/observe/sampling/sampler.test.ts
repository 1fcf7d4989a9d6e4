import assert from 'node:assert/strict'
import { test } from 'node:test'
import { open } from '../../client/mill.ts'
import type { Counts } from '../../engine/engine.ts'
import { Events } from '../../events.ts'
import { defineJob } from '../../job/definition.ts'
import { TestClock } from '../../testing/test-clock.ts'
import { type Sample, startSampling } from './sampler.ts'
import { ThrottledQuery } from './throttled-query.ts'
import { ratesBetween } from './traffic.ts'

const counted = (completed: number, dead = 0): Counts => ({
  mail: { ready: 1, delayed: 0, inProgress: 0, completed, dead },
})

test('a store is counted once a second at most, and for 1 % of the time where that takes long', async () => {
  const clock = new TestClock()
  let counts = 0
  let tookMs = 0
  const query = new ThrottledQuery(
    async () => {
      counts += 1
      await clock.sleep(tookMs)
      return counted(counts)
    },
    { clock },
  )
  const settled = async () => {
    const answer = query.read()
    await clock.advance(tookMs)
    return (await answer).value.mail?.completed
  }
  assert.equal(await settled(), 1)
  assert.equal(await settled(), 1, 'asked again at once')
  await clock.advance(1_000)
  assert.equal(await settled(), 1, 'what is known is answered at once')
  assert.equal(counts, 2, 'and counted anew meanwhile')
  assert.equal(await settled(), 2)
  tookMs = 400
  await clock.advance(1_000)
  await settled()
  assert.equal(counts, 3)
  await clock.advance(1_000)
  await settled()
  assert.equal(counts, 4, 'one that took long may be the fault of the machine')
  await clock.advance(39_900)
  await settled()
  assert.equal(counts, 4, 'after two it rests a hundred times as long')
  await clock.advance(200)
  await settled()
  assert.equal(counts, 5)
  await clock.advance(60_000)
  const renewed = query.fresh()
  await clock.advance(tookMs)
  assert.equal((await renewed).value.mail?.completed, 6, 'waiting readers get the new one')
})

test('a first count that fails is told, and a later one leaves what is known', async () => {
  const clock = new TestClock()
  let isAway = true
  const query = new ThrottledQuery(
    async () => {
      if (isAway) throw new Error('away')
      return counted(7)
    },
    { clock },
  )
  await assert.rejects(query.read(), /away/)
  isAway = false
  await clock.advance(1_000)
  assert.equal((await query.read()).value.mail?.completed, 7)
  isAway = true
  await clock.advance(1_000)
  assert.equal((await query.read()).value.mail?.completed, 7)
  await clock.advance(0)
  assert.equal((await query.read()).value.mail?.completed, 7)
})

test('from two counts of a store comes what other processes did', () => {
  const between = (before: Counts, after: Counts, failed: number | null = null) => {
    const reported = failed === null ? null : new Map([['mail', { completed: 0, failed, isRemoved: false }]])
    return Object.values(ratesBetween({ counts: before, atMs: 0 }, { counts: after, atMs: 2_000 }, reported))
  }
  assert.deepEqual(between(counted(10, 1), counted(30, 2), 4), [10, 2, 10.5])
  assert.deepEqual(between(counted(10, 1), counted(30, 2)), [10, null, 10.5], 'nobody reports failed attempts')
  assert.deepEqual(between(counted(10, 2), counted(10, 0), 0), [0, 0, null], 'dead letters were removed')
  assert.deepEqual(between(counted(30), counted(10)), [null, null, null], 'finished jobs were removed')
})

test('a sampler beside workers of other processes tells what they do, how long it takes, and what is enqueued', async () => {
  const clock = new TestClock()
  const mill = await open('memory:', { clock })
  // Another process has other events.
  const sampler = startSampling({ engine: mill.engine, events: new Events() }, { clock })
  const samples: Sample[] = []
  sampler.subscribe((sample) => samples.push(sample))
  const slow = defineJob({ type: 'slow', run: () => clock.sleep(300) })
  await clock.advance('3s')
  await mill.enqueueMany(slow, [1, 2, 3, 4])
  await mill.work([slow])
  for (let steps = 0; steps < 60 && samples.length < 3; steps += 1) await clock.advance(100)
  const point = samples.map((sample) => sample.point).find(({ completedPerSecond }) => completedPerSecond === 2)
  assert.ok(point)
  assert.deepEqual([point.enqueuedPerSecond, point.failedPerSecond], [2, 0])
  assert.ok((point.durationP50Ms ?? 0) >= 300 && (point.durationP95Ms ?? 0) < 1_000)
  assert.ok(point.waitP95Ms !== null)
  sampler.close()
  await mill.close()
})

test('a sampler tells what its process did in each step, and what the store holds', async () => {
  const clock = new TestClock()
  const mill = await open('memory:', { clock })
  const sampler = startSampling(mill, { clock, every: '2s', keep: '10s', alertsFiring: () => 3 })
  const samples: Sample[] = []
  sampler.subscribe((sample) => samples.push(sample))
  const greet = defineJob({ type: 'greet', attempts: 1, run: () => 'hello' })
  const fail = defineJob({ type: 'fail', attempts: 1, run: () => Promise.reject(new Error('no')) })
  await mill.enqueueMany(greet, [null, null, null, null])
  await mill.enqueue(fail, null)
  await mill.enqueue(greet, null, { delay: '1h' })
  await mill.work([greet, fail])
  for (let steps = 0; steps < 40 && samples.length < 2; steps += 1) await clock.advance(100)
  const [first, second] = samples
  assert.ok(first && second)
  assert.equal(first.point.completedPerSecond, 2)
  assert.equal(first.point.failedPerSecond, 0.5)
  assert.equal(first.point.enqueuedPerSecond, 3)
  assert.ok(first.point.waitP95Ms !== null && first.point.durationP50Ms !== null)
  assert.equal(second.point.completedPerSecond, 0)
  assert.equal(second.point.waitP50Ms, null)
  assert.deepEqual([second.point.ready, second.point.delayed, second.point.dead], [0, 1, 1])
  assert.equal(second.overview.alertsFiring, 3)
  assert.equal(second.overview.counts.greet?.completed, 4)
  assert.equal(second.overview.health, 'degraded', 'there is a dead letter')
  assert.deepEqual(await sampler.overview(), samples.at(-1)?.overview)
  await clock.advance('30s')
  assert.equal(sampler.points().length, 5, 'no more than it keeps')
  const [, , third] = sampler.points()
  assert.equal(sampler.points(third?.atMs).length, 2)
  sampler.close()
  const told = samples.length
  await clock.advance('10s')
  assert.equal(samples.length, told)
  await mill.close()
})

test('an unreachable store leaves a gap, and the next step goes on', async () => {
  const clock = new TestClock()
  const mill = await open('memory:', { clock })
  let isAway = true
  const engine = {
    ping: () => mill.engine.ping(),
    counts: () => (isAway ? Promise.reject(new Error('away')) : mill.engine.counts()),
  }
  const sampler = startSampling({ engine, events: mill.events }, { clock })
  await assert.rejects(sampler.overview(), /away/)
  await clock.advance('6s')
  assert.deepEqual(sampler.points(), [])
  isAway = false
  await clock.advance('4s')
  assert.ok(sampler.points().length > 0)
  sampler.close()
  await mill.close()
})
