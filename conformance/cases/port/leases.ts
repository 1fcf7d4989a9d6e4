import assert from 'node:assert/strict'
import type { CaseFile } from '../../case.ts'
import { inspection, need, reaping } from '../../needs.ts'
import { complete, first, idsOf } from '../../stage.ts'

export const leases: CaseFile = {
  level: 'port',
  concept: 'Leases and renewal',
  cases: [
    {
      name: 'a renewed lease outlives its first expiry',
      guarantees: ['I3'],
      async run(stage) {
        await stage.put()
        const consumer = await stage.consume()
        const lease = await stage.one(consumer)
        for (let renewal = 0; renewal < 5; renewal += 1) {
          await stage.harness.advance(stage.leaseMs / 2)
          assert.deepEqual(await consumer.renew([lease], stage.leaseMs), [], `renewal ${renewal + 1} was refused`)
        }
        await stage.settle(consumer, lease, complete)
      },
    },
    {
      name: 'a renewed lease is not reaped at its first expiry, and is at its second',
      guarantees: ['I3', 'I6'],
      ...need(reaping),
      async run(stage) {
        await stage.put()
        const consumer = await stage.consume()
        const lease = await stage.one(consumer)
        const reaper = await stage.reaper()
        await stage.harness.advance(stage.leaseMs * 0.6)
        assert.deepEqual(await consumer.renew([lease], stage.leaseMs), [])
        await stage.harness.advance(stage.leaseMs * 0.6)
        assert.deepEqual(await stage.take(reaper, 5, { from: 'expired' }), [], 'a renewed lease was reaped')
        await stage.harness.advance(stage.leaseMs * 0.6)
        assert.deepEqual(idsOf(await stage.take(reaper, 5, { from: 'expired' })), [lease.job.id])
      },
    },
    {
      name: 'an expired lease cannot be renewed back to life',
      guarantees: ['I3'],
      ...need(reaping),
      async run(stage) {
        await stage.put()
        const consumer = await stage.consume()
        const lease = await stage.one(consumer)
        await stage.expire(lease)
        const lost = await consumer.renew([lease], stage.leaseMs * 10)
        assert.deepEqual(
          lost.map(({ reason }) => reason),
          ['expired'],
        )
        await stage.refused(consumer, lease, complete)
        assert.deepEqual(idsOf(await stage.take(await stage.reaper(), 5, { from: 'expired' })), [lease.job.id])
      },
    },
    {
      name: 'a lease ends exactly at its time',
      guarantees: ['I3', 'I11'],
      ...need(reaping),
      async run(stage) {
        await stage.put()
        const consumer = await stage.consume()
        const lease = await stage.one(consumer)
        assert.ok(lease.expiresAtMs !== null)
        // A real clock may wake a little early, a virtual one never does.
        while (stage.nowMs < lease.expiresAtMs) await stage.harness.advance(lease.expiresAtMs - stage.nowMs)
        await stage.refused(consumer, lease, complete)
        assert.equal((await stage.take(await stage.reaper(), 5, { from: 'expired' })).length, 1)
      },
    },
    {
      name: 'one renewal of many extends those still held and names those lost',
      guarantees: ['I3'],
      async run(stage) {
        await stage.engine.enqueue(stage.jobs(5))
        const consumer = await stage.consume()
        const held = await stage.take(consumer, 5)
        const [gone, released] = [first(held), first(held.slice(3))]
        await stage.settle(consumer, gone, complete)
        await stage.settle(consumer, released, { kind: 'release', delayMs: 0, reason: 'staged' })
        await stage.harness.advance(stage.leaseMs * 0.6)
        const lost = await consumer.renew(held, stage.leaseMs)
        assert.deepEqual([...lost.map(({ lease }) => lease.token)].sort(), [gone.token, released.token].sort())
        await stage.harness.advance(stage.leaseMs * 0.6)
        const rest = held.filter((lease) => lease !== gone && lease !== released)
        const refused = await consumer.settle(rest.map((lease) => ({ lease, outcome: complete })))
        assert.deepEqual(refused, [], 'a lease that was renewed among lost ones had run out')
      },
    },
    {
      name: 'renewing nothing loses nothing',
      guarantees: ['I3'],
      async run(stage) {
        assert.deepEqual(await (await stage.consume()).renew([], stage.leaseMs), [])
      },
    },
    {
      // B93 B97 X193
      name: 'every type has the lease that its consumer asked for',
      guarantees: ['I3', 'I11'],
      ...need(reaping),
      async run(stage) {
        const [short, long] = [`${stage.type}-short`, `${stage.type}-long`]
        await stage.put({ type: short })
        await stage.put({ type: long })
        const types = [
          { type: short, leaseMs: stage.leaseMs },
          { type: long, leaseMs: stage.leaseMs * 10 },
        ]
        const held = await stage.take(await stage.consume({ types }), 2)
        const untilMs = (type: string): number => held.find(({ job }) => job.type === type)?.expiresAtMs ?? 0
        assert.ok(Math.abs(untilMs(long) - untilMs(short) - stage.leaseMs * 9) <= 50)
        await stage.harness.advance(stage.leaseMs + 1)
        const expired = await stage.take(await stage.reaper(), 5, { from: 'expired' })
        assert.deepEqual(
          expired.map(({ job }) => job.type),
          [short],
        )
      },
    },
    {
      // B93 B178
      name: 'a running job shows its holder and until when',
      guarantees: ['I3'],
      ...need(inspection),
      async run(stage) {
        const { id } = await stage.put()
        const lease = await stage.one(await stage.consume({ worker: 'host:7:abc' }))
        const view = await stage.view(id)
        assert.deepEqual([view.state, view.leaseOwner, view.attempt], ['in_progress', 'host:7:abc', 1])
        // A store whose locks end by its own clock tells it as exactly as it was asked.
        const offMs = (view.leaseUntilMs ?? 0) - (lease.expiresAtMs ?? 0)
        assert.ok(Math.abs(offMs) <= stage.leaseMs / 10, `shown ${offMs} ms off`)
        assert.ok(view.startedAtMs !== null && view.startedAtMs <= stage.nowMs)
      },
    },
  ],
}
