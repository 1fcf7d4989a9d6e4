import assert from 'node:assert/strict'
import type { Lease } from '../../../src/engine/outcome.ts'
import { Events } from '../../../src/events.ts'
import { reapOnce } from '../../../src/keeper/reaper.ts'
import type { CaseFile } from '../../case.ts'
import { need, reaping } from '../../needs.ts'
import { sharing } from '../../partitions.ts'
import { complete, dead, first, idsOf, retry } from '../../stage.ts'

export const recovering: CaseFile = {
  level: 'port',
  concept: 'Recovery of expired leases',
  cases: [
    {
      // A01 B46 B99
      name: 'a dead holder’s job runs again, and its lost start has counted',
      guarantees: ['I1', 'I2', 'I6'],
      ...need(sharing),
      async run(stage) {
        const { id } = await stage.put()
        const rival = await stage.other()
        await stage.recover(await stage.one(await stage.consume()), rival)
        const successor = await stage.consume({ on: rival })
        const again = await stage.one(successor)
        assert.deepEqual([again.job.id, again.attempt], [id, 2])
        await stage.settle(successor, again, complete)
        await stage.expectCounts({ completed: 1 })
      },
    },
    {
      name: 'the reaper finds nothing before a lease has run out',
      guarantees: ['I3', 'I6'],
      ...need(reaping),
      async run(stage) {
        await stage.put()
        const lease = await stage.one(await stage.consume())
        const reaper = await stage.reaper()
        assert.deepEqual(await stage.take(reaper, 5, { from: 'expired' }), [])
        await stage.expire(lease)
        assert.deepEqual(idsOf(await stage.take(reaper, 5, { from: 'expired' })), [lease.job.id])
      },
    },
    {
      // B99
      name: 'the reaper receives the job under a fresh token with its attempt unchanged',
      guarantees: ['I2', 'I3'],
      ...need(reaping),
      async run(stage) {
        await stage.put({ payload: '"kept"' })
        const consumer = await stage.consume()
        await stage.settle(consumer, await stage.one(consumer), retry())
        const lost = await stage.one(consumer)
        await stage.expire(lost)
        const held = first(await stage.take(await stage.reaper(), 5, { from: 'expired' }))
        assert.deepEqual([held.job.id, held.job.payload, held.attempt], [lost.job.id, '"kept"', 2])
        assert.notEqual(held.token, lost.token)
        assert.ok(held.expiresAtMs !== null && held.expiresAtMs > stage.nowMs)
      },
    },
    {
      name: 'two reapers do not share an expired job, and no claim for ready jobs sees it',
      guarantees: ['I4'],
      ...need(reaping),
      async run(stage) {
        await stage.engine.enqueue(stage.jobs(12))
        const consumer = await stage.consume()
        const held = await stage.take(consumer, 12)
        await stage.expire(first(held))
        await stage.none(consumer, 'an expired lease is not ready before it is reaped')
        const reapers = [await stage.reaper(), await stage.reaper(await stage.other())]
        const racing = reapers.flatMap((reaper) =>
          Array.from({ length: 3 }, () => stage.take(reaper, 4, { from: 'expired' })),
        )
        const reaped = (await Promise.all(racing)).flat()
        assert.deepEqual([...idsOf(reaped)].sort(), [...idsOf(held)].sort())
        await stage.none(consumer, 'a job was handed out while the reaper had it')
      },
    },
    {
      name: 'the reaper takes only what has expired, at most as many as asked for',
      guarantees: ['I4', 'I6'],
      ...need(reaping),
      async run(stage) {
        await stage.engine.enqueue(stage.jobs(5))
        const consumer = await stage.consume()
        const held = await stage.take(consumer, 3)
        await stage.expire(first(held))
        const reaper = await stage.reaper()
        assert.equal((await stage.take(reaper, 2, { from: 'expired' })).length, 2)
        assert.equal((await stage.take(reaper, 5, { from: 'expired' })).length, 1)
        await stage.expectCounts({ ready: 2, inProgress: 3 })
      },
    },
    {
      name: 'reaper passes: one pass recovers all that has expired, however many an engine hands out at once',
      guarantees: ['I6'],
      ...need(reaping),
      async run(stage) {
        const count = 260
        await stage.engine.enqueue(stage.jobs(count))
        const consumer = await stage.consume()
        const held: Lease[] = []
        while (held.length < count) {
          const leases = await stage.take(consumer, count - held.length)
          assert.ok(leases.length > 0, `${held.length} of ${count} could be claimed`)
          held.push(...leases)
        }
        await stage.harness.advance(stage.leaseMs + 1)
        const passes: unknown[] = []
        const events = new Events()
        events.on('reaper.pass', ({ retried, dead: buried }) => passes.push({ retried, dead: buried }))
        const reaped = await reapOnce({
          engine: stage.engine,
          definitions: new Map(),
          clock: stage.harness.clock,
          random: () => 0.5,
          redactor: (text) => text,
          events,
          worker: 'suite:1:reaper',
        })
        assert.deepEqual(reaped, { retried: count, dead: 0 })
        assert.deepEqual(passes, [{ retried: count, dead: 0 }])
        assert.equal((await stage.counts()).inProgress, 0)
      },
    },
    {
      name: 'a reaper that dies is itself reaped',
      guarantees: ['I6'],
      ...need(reaping),
      async run(stage) {
        await stage.put()
        const lost = await stage.one(await stage.consume())
        await stage.expire(lost)
        const rival = await stage.other()
        // With types, because how long a reaper without them holds a job is the engine's own choice.
        const dying = await stage.consume({ on: rival })
        const taken = first(await stage.take(dying, 1, { from: 'expired' }))
        await stage.expire(taken)
        const successor = await stage.consume()
        const again = first(await stage.take(successor, 1, { from: 'expired' }))
        assert.deepEqual([again.job.id, again.attempt], [lost.job.id, 1])
        assert.equal(new Set([lost.token, taken.token, again.token]).size, 3)
        await stage.refused(dying, taken, retry())
        await stage.settle(successor, again, retry())
        await stage.expectCounts({ ready: 1 })
      },
    },
    {
      name: 'what the reaper buries stays buried',
      guarantees: ['I5', 'I6'],
      ...need(reaping),
      async run(stage) {
        await stage.put({ attempts: 1 })
        const consumer = await stage.consume()
        await stage.expire(await stage.one(consumer))
        const reaper = await stage.reaper()
        await stage.settle(reaper, first(await stage.take(reaper, 1, { from: 'expired' })), dead)
        await stage.none(consumer, 'a buried job was handed out')
        await stage.expectCounts({ dead: 1 })
      },
    },
    {
      name: 'a consumer of some types reaps only those',
      guarantees: ['I6'],
      ...need(reaping),
      async run(stage) {
        const [mine, foreign] = [`${stage.type}-a`, `${stage.type}-b`]
        await stage.put({ type: mine })
        await stage.put({ type: foreign })
        const held = await stage.take(await stage.consume({ types: [mine, foreign] }), 2)
        await stage.expire(first(held))
        const expired = await stage.take(await stage.consume({ types: [mine] }), 5, { from: 'expired' })
        assert.deepEqual(
          expired.map(({ job }) => job.type),
          [mine],
        )
      },
    },
  ],
}
