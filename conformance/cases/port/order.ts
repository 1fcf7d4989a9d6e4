import assert from 'node:assert/strict'
import { acrossTypes } from '../../across-types.ts'
import type { CaseFile } from '../../case.ts'
import { arrivalOrder, DELAY_MS, delay, need, priority } from '../../needs.ts'
import { complete, idsOf } from '../../stage.ts'

export const claimOrder: CaseFile = {
  level: 'port',
  concept: 'What a claim hands out, and in which order',
  cases: [
    {
      // B84 B95
      name: 'the most urgent priority is claimed first',
      guarantees: ['I1'],
      ...need(priority),
      async run(stage) {
        const ids = new Map<number, string>()
        for (const rank of [10, 5, 1, 7]) ids.set(rank, (await stage.put({ priority: rank })).id)
        const leases = await stage.take(await stage.consume(), 10)
        assert.deepEqual(
          leases.map(({ job }) => job.priority),
          [1, 5, 7, 10],
        )
        assert.deepEqual(
          idsOf(leases),
          [1, 5, 7, 10].map((rank) => ids.get(rank)),
        )
      },
    },
    {
      name: 'one at a time keeps the same order as all at once',
      guarantees: ['I1'],
      ...need(priority),
      async run(stage) {
        for (const rank of [3, 1, 2, 1]) await stage.put({ priority: rank })
        const consumer = await stage.consume()
        const ranks: number[] = []
        for (let index = 0; index < 4; index += 1) ranks.push((await stage.one(consumer)).job.priority)
        assert.deepEqual(ranks, [1, 1, 2, 3])
      },
    },
    {
      name: 'an urgent job that arrives later overtakes those that wait',
      guarantees: ['I1'],
      ...need(priority),
      async run(stage) {
        await stage.engine.enqueue(stage.jobs(5))
        const consumer = await stage.consume()
        await stage.one(consumer)
        await stage.harness.advance(10)
        const urgent = await stage.put({ priority: 1 })
        assert.equal((await stage.one(consumer)).job.id, urgent.id)
      },
    },
    {
      // C06 C16
      name: 'jobs of one priority are claimed in the order they arrived',
      guarantees: ['I1'],
      ...need(arrivalOrder),
      async run(stage) {
        const jobs = stage.jobs(12)
        await stage.engine.enqueue(jobs.slice(0, 6))
        await stage.engine.enqueue(jobs.slice(6))
        const consumer = await stage.consume()
        const taken = [...(await stage.take(consumer, 4)), ...(await stage.take(consumer, 10))]
        assert.deepEqual(
          idsOf(taken),
          jobs.map(({ id }) => id),
        )
      },
    },
    {
      // B95
      name: 'within a priority the earliest due time comes first, whatever arrived first',
      guarantees: ['I1'],
      ...need(priority, delay),
      async run(stage) {
        const late = await stage.put({ delayMs: DELAY_MS })
        const early = await stage.put({ delayMs: DELAY_MS / 2 })
        const urgent = await stage.put({ delayMs: DELAY_MS, priority: 1 })
        await stage.harness.advance(DELAY_MS + 1)
        assert.deepEqual(idsOf(await stage.take(await stage.consume(), 10)), [urgent.id, early.id, late.id])
      },
    },
    {
      // A39 B94
      name: 'a delayed job is not claimable before its time and is then',
      guarantees: ['I1', 'I11'],
      ...need(delay),
      async run(stage) {
        const { id } = await stage.put({ delayMs: DELAY_MS })
        const consumer = await stage.consume()
        await stage.none(consumer, 'claimed before its delay')
        await stage.expectCounts({ delayed: 1 })
        await stage.harness.advance(DELAY_MS / 2)
        await stage.none(consumer, 'claimed before its delay')
        await stage.harness.advance(DELAY_MS / 2 + 1)
        assert.deepEqual(idsOf(await stage.take(consumer)), [id])
      },
    },
    {
      name: 'an absolute time is kept, and a past one is due at once',
      guarantees: ['I1', 'I11'],
      ...need(delay),
      async run(stage) {
        const later = await stage.put({ runAtMs: stage.nowMs + DELAY_MS })
        const past = await stage.put({ runAtMs: stage.nowMs - DELAY_MS })
        const consumer = await stage.consume()
        const due = await stage.one(consumer)
        assert.equal(due.job.id, past.id)
        await stage.none(consumer, 'claimed before its time')
        await stage.settle(consumer, due, complete)
        await stage.harness.advance(DELAY_MS + 1)
        const leases = await stage.take(consumer, 5)
        assert.deepEqual(idsOf(leases), [later.id])
        assert.equal(leases[0]?.job.runAtMs, later.runAtMs)
      },
    },
    {
      name: 'an urgent job that is due later does not hold back what is due now',
      guarantees: ['I1'],
      ...need(delay),
      async run(stage) {
        await stage.put({ priority: 1, delayMs: DELAY_MS })
        const { id } = await stage.put({ priority: 10 })
        assert.deepEqual(idsOf(await stage.take(await stage.consume(), 5)), [id])
      },
    },
    {
      // A14 X193
      name: 'a consumer receives only the types it subscribed to',
      guarantees: ['I1'],
      async run(stage) {
        const [wanted, foreign] = [`${stage.type}-a`, `${stage.type}-b`]
        await stage.put({ type: foreign, priority: 1 })
        const { id } = await stage.put({ type: wanted })
        const consumer = await stage.consume({ types: [wanted] })
        assert.deepEqual(idsOf(await stage.take(consumer, 10)), [id])
        await stage.expectCounts({ ready: 1 }, foreign)
      },
    },
    {
      name: 'a consumer of several types receives them in one order',
      guarantees: ['I1'],
      ...need(priority, acrossTypes),
      async run(stage) {
        const [a, b] = [`${stage.type}-a`, `${stage.type}-b`]
        for (const [type, rank] of [
          [a, 4],
          [b, 3],
          [a, 2],
          [b, 1],
        ] as const)
          await stage.put({ type, priority: rank })
        const leases = await stage.take(await stage.consume({ types: [a, b] }), 10)
        assert.deepEqual(
          leases.map(({ job }) => [job.type, job.priority]),
          [
            [b, 1],
            [a, 2],
            [b, 3],
            [a, 4],
          ],
        )
      },
    },
    {
      // B96
      name: 'a claim returns at most as many as asked for, and nothing when nothing is due',
      guarantees: ['I1'],
      async run(stage) {
        await stage.engine.enqueue(stage.jobs(5))
        const consumer = await stage.consume()
        assert.equal((await stage.take(consumer, 3)).length, 3)
        assert.equal((await stage.take(consumer, 3)).length, 2)
        assert.deepEqual(await stage.take(consumer, 3), [])
      },
    },
    {
      name: 'a bound for a single type is kept while the others fill the claim',
      guarantees: ['I1'],
      async run(stage) {
        const [a, b, c] = [`${stage.type}-a`, `${stage.type}-b`, `${stage.type}-c`]
        for (const type of [a, b, c]) await stage.engine.enqueue(stage.jobs(5, { type, priority: type === a ? 1 : 5 }))
        const consumer = await stage.consume({ types: [a, b, c] })
        const leases = await stage.take(consumer, 7, { perType: { [a]: 2, [b]: 0 } })
        const claimed = (type: string): number => leases.filter(({ job }) => job.type === type).length
        assert.deepEqual([claimed(a), claimed(b), claimed(c)], [2, 0, 5])
      },
    },
  ],
}
