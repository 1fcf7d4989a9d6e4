import assert from 'node:assert/strict'
import type { Lease } from '../../../src/engine/outcome.ts'
import type { CaseFile } from '../../case.ts'
import { inspection, need, priority } from '../../needs.ts'
import { complete, dead, first, never, release, retry } from '../../stage.ts'

const LONG_MS = 60_000

export const settlingBatches: CaseFile = {
  level: 'port',
  concept: 'Settling in batches',
  cases: [
    {
      name: 'a batch of mixed outcomes is applied one by one, and only the lost ones are refused',
      guarantees: ['I3'],
      async run(stage) {
        await stage.engine.enqueue(stage.jobs(8))
        const consumer = await stage.consume()
        const held = await stage.take(consumer, 8)
        const [gone, forged] = [first(held), { ...first(held.slice(4)), token: 'forged' }]
        await stage.settle(consumer, gone, complete)
        const lost = await consumer.settle([
          { lease: first(held.slice(1)), outcome: complete },
          { lease: gone, outcome: dead },
          { lease: first(held.slice(2)), outcome: retry() },
          { lease: first(held.slice(3)), outcome: dead },
          { lease: forged, outcome: complete },
          { lease: first(held.slice(5)), outcome: release() },
          { lease: first(held.slice(6)), outcome: complete },
        ])
        assert.deepEqual([...lost.map(({ lease }) => lease.token)].sort(), [gone.token, forged.token].sort())
        await stage.expectCounts({ completed: 3, ready: 2, dead: 1, inProgress: 2 })
      },
    },
    {
      name: 'each lease of a batch gets its own outcome',
      guarantees: ['I3'],
      ...need(inspection),
      async run(stage) {
        const jobs = stage.jobs(4)
        await stage.engine.enqueue(jobs)
        const consumer = await stage.consume()
        const held = await stage.take(consumer, 4)
        const settlements = held.map((lease, index) => ({
          lease,
          outcome: { kind: 'complete', result: `{"index":${index}}`, durationMs: index } as const,
        }))
        assert.deepEqual(await consumer.settle(settlements), [])
        for (const [index, lease] of held.entries()) {
          const view = await stage.view(lease.job.id)
          assert.deepEqual([view.result, view.durationMs], [{ index }, index])
        }
      },
    },
    {
      name: 'the same lease twice in a batch is settled once',
      guarantees: ['I3'],
      async run(stage) {
        await stage.put()
        const consumer = await stage.consume()
        const lease = await stage.one(consumer)
        const lost = await consumer.settle([
          { lease, outcome: complete },
          { lease, outcome: dead },
        ])
        assert.equal(lost.length, 1)
        await stage.expectCounts({ completed: 1 })
      },
    },
    {
      name: 'a waiting claim is given the most urgent job of a batch that is released',
      guarantees: ['I1'],
      ...need(priority),
      async run(stage) {
        for (const rank of [9, 5, 1]) await stage.put({ priority: rank })
        const consumer = await stage.consume()
        const held = await stage.take(consumer, 3)
        const claim = (await stage.consume()).claim({ max: 1, waitMs: LONG_MS, signal: never })
        await stage.harness.advance(50)
        const leastUrgentFirst = held.toSorted((one, other) => other.job.priority - one.job.priority)
        assert.deepEqual(await consumer.settle(leastUrgentFirst.map((lease) => ({ lease, outcome: release() }))), [])
        assert.equal(first(await stage.promptly(claim, 'the claim')).job.priority, 1)
      },
    },
    {
      name: 'an outcome whose text the store cannot keep is stored without it or refused alone, and nothing of its batch is lost',
      guarantees: ['I3', 'I9'],
      async run(stage) {
        await stage.engine.enqueue(stage.jobs(2))
        const consumer = await stage.consume()
        const [odd, other] = await stage.take(consumer, 2)
        assert.ok(odd && other)
        const text = 'a\u0000b\ud83dc'
        const error = { name: text, code: text, message: text, stack: text }
        const refused = await consumer.settle([
          { lease: other, outcome: complete },
          { lease: odd, outcome: { kind: 'dead', error } },
        ])
        // Where it is refused its lease still holds, and without the text it is taken.
        for (const { lease, reason } of refused) {
          assert.deepEqual([lease.token, reason], [odd.token, 'unstorable'])
          await stage.settle(consumer, odd, dead)
        }
        await stage.expectCounts({ completed: 1, dead: 1 })
      },
    },
    {
      name: 'an empty batch changes nothing',
      guarantees: ['I3'],
      async run(stage) {
        await stage.put()
        assert.deepEqual(await (await stage.consume()).settle([]), [])
        await stage.expectCounts({ ready: 1 })
      },
    },
    {
      name: 'a batch of five hundred is settled whole',
      guarantees: ['I1'],
      async run(stage) {
        await stage.engine.enqueue(stage.jobs(500))
        const consumer = await stage.consume()
        const held: Lease[] = []
        // An engine may hand out fewer at once than it was asked for.
        for (let taken = await stage.take(consumer, 500); taken.length > 0; taken = await stage.take(consumer, 500))
          held.push(...taken)
        assert.equal(held.length, 500)
        assert.deepEqual(await consumer.settle(held.map((lease) => ({ lease, outcome: complete }))), [])
        await stage.expectCounts({ completed: 500 })
      },
    },
  ],
}
