import assert from 'node:assert/strict'
import { setImmediate as turn } from 'node:timers/promises'
import { leadershipOf } from '../../../src/engine/capability-checks.ts'
import { limits } from '../../bounds.ts'
import type { CaseFile } from '../../case.ts'
import { leadership, need, reaping } from '../../needs.ts'
import { complete, idsOf, never, release, retry } from '../../stage.ts'

const HOUR_MS = 3_600_000
const PER_MS = 400

export const clockSteps: CaseFile = {
  level: 'port',
  concept: 'Clock steps',
  cases: [
    {
      name: 'a clock set forward takes no lease from its holder',
      guarantees: ['I3', 'I4'],
      ...need(reaping),
      async run(stage) {
        await stage.engine.enqueue(stage.jobs(3))
        const consumer = await stage.consume()
        const held = await stage.take(consumer, 3)
        const reaper = await stage.reaper(await stage.other())
        // Looked once before, as a reaper has that lives while the clock is set.
        assert.deepEqual(await stage.take(reaper, 5, { from: 'expired' }), [])
        // Reported and renewed at one time, so that only the end of the lease tells them apart.
        for (const lease of held) assert.equal(await consumer.report(lease, '1'), true)
        assert.deepEqual(await consumer.renew(held, stage.leaseMs), [])
        await stage.step(HOUR_MS)
        assert.deepEqual(idsOf(await stage.take(reaper, 5, { from: 'expired' })), [], 'a live job was taken')
        assert.deepEqual(await consumer.renew(held, stage.leaseMs), [], 'a held lease was not renewed')
        assert.deepEqual(idsOf(await stage.take(reaper, 5, { from: 'expired' })), [])
        for (const lease of held) await stage.settle(consumer, lease, complete)
        await stage.expectCounts({ completed: 3 })
      },
    },
    {
      name: 'a holder settles right after the clock was set forward or back',
      guarantees: ['I3'],
      ...need(reaping),
      async run(stage) {
        await stage.engine.enqueue(stage.jobs(3))
        const consumer = await stage.consume()
        const [one, two, three] = await stage.take(consumer, 3)
        assert.ok(one && two && three)
        await stage.step(HOUR_MS)
        await stage.settle(consumer, one, complete)
        assert.equal(await consumer.report(two, '1'), true, 'the progress of a held job was refused')
        await stage.settle(consumer, two, retry())
        await stage.step(-2 * HOUR_MS)
        await stage.settle(consumer, three, complete)
      },
    },
    {
      name: 'a lease that nobody renews ends in its time, wherever the clock is set',
      guarantees: ['I3', 'I6'],
      ...need(reaping),
      async run(stage) {
        const consumer = await stage.consume()
        const reaper = await stage.reaper(await stage.other())
        for (const stepMs of [-HOUR_MS, HOUR_MS]) {
          const { id } = await stage.put()
          const lease = await stage.one(consumer)
          await stage.step(stepMs)
          // As a keeper does within seconds: an engine whose locks ended with the step counts from here.
          assert.deepEqual(idsOf(await stage.take(reaper, 5, { from: 'expired' })), [], 'a live job was taken')
          await stage.harness.advance(stage.leaseMs / 2)
          assert.deepEqual(idsOf(await stage.take(reaper, 5, { from: 'expired' })), [], 'it was taken too early')
          await stage.harness.advance(stage.leaseMs / 2 + 1)
          const [taken] = await stage.take(reaper, 5, { from: 'expired' })
          assert.equal(taken?.job.id, id, `a lease outlived its time when the clock was set by ${stepMs} ms`)
          await stage.refused(consumer, lease, complete)
          await stage.settle(reaper, taken, complete)
        }
      },
    },
    {
      name: 'jobs that were due stay due when the clock is set back, and retries keep their delay',
      guarantees: ['I6'],
      ...need(reaping),
      async run(stage) {
        const [first, second] = [await stage.put(), await stage.put()]
        const consumer = await stage.consume()
        const lease = await stage.one(consumer)
        assert.equal(lease.job.id, first.id)
        await stage.settle(consumer, lease, retry(500))
        await stage.step(-HOUR_MS)
        await stage.settle(consumer, await stage.one(consumer), complete)
        await stage.expectCounts({ completed: 1, delayed: 1 })
        await stage.harness.advance(501)
        const again = await stage.one(consumer)
        assert.equal(again.job.id, first.id)
        assert.notEqual(first.id, second.id)
        await stage.step(-HOUR_MS)
        await stage.settle(consumer, again, release(0))
        assert.equal((await stage.one(consumer)).job.id, first.id, 'one that ran meanwhile and was released is not due')
      },
    },
    {
      name: 'a rate limit holds and goes on when the clock is set forward or back',
      guarantees: ['I6', 'I10'],
      ...need(limits, reaping),
      async run(stage) {
        await stage.engine.enqueue(stage.jobs(6))
        const limit = { max: 1, perMs: PER_MS }
        const consumers = [await stage.consume({ limit }), await stage.consume({ limit, on: await stage.other() })]
        const take = async () => (await Promise.all(consumers.map((consumer) => stage.take(consumer, 3)))).flat().length
        assert.equal(await take(), 1)
        await stage.step(HOUR_MS)
        assert.equal(await take(), 0, 'a clock set forward opened the limit')
        await stage.harness.advance(PER_MS + 1)
        assert.equal(await take(), 1)
        await stage.step(-2 * HOUR_MS)
        assert.equal(await take(), 0, 'a clock set back opened the limit')
        await stage.harness.advance(PER_MS + 1)
        assert.equal(await take(), 1, 'a clock set back froze the limit')
      },
    },
    {
      name: 'a start that is recorded just after the clock was set counts for one window',
      guarantees: ['I6', 'I10'],
      ...need(limits, reaping),
      async run(stage) {
        await stage.engine.enqueue(stage.jobs(3))
        const consumer = await stage.consume({ limit: { max: 1, perMs: PER_MS } })
        for (const stepMs of [HOUR_MS, -2 * HOUR_MS]) {
          assert.equal((await stage.take(consumer, 3)).length, 1)
          await stage.step(stepMs)
          // An engine may record the start of a claimed job when the handler has started, so after the step.
          await turn()
          await stage.engine.ping()
          await stage.harness.advance(PER_MS + 1)
        }
        assert.equal((await stage.take(consumer, 3)).length, 1)
      },
    },
    {
      name: 'a claim that waits ends in its time when the clock is set back',
      guarantees: ['I8'],
      ...need(reaping),
      async run(stage) {
        const consumer = await stage.consume()
        const waiting = consumer.claim({ max: 1, waitMs: 500, signal: never })
        await stage.harness.advance(100)
        await stage.step(-HOUR_MS)
        assert.deepEqual(await stage.within(2_000, waiting, 'the end of the wait'), [])
      },
    },
    {
      name: 'leadership changes hands in time when the clock is set back',
      guarantees: ['I6'],
      ...need(leadership),
      async run(stage) {
        const [one, other] = [leadershipOf(stage.engine), leadershipOf(await stage.other())]
        assert.equal((await one.campaign('o', 'a', 1_000)).holder, 'a')
        await stage.step(-HOUR_MS)
        await stage.harness.advance(1_001)
        assert.equal((await other.campaign('o', 'b', 1_000)).holder, 'b')
      },
    },
  ],
}
