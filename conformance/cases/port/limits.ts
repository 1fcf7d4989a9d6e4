import assert from 'node:assert/strict'
import { limits } from '../../bounds.ts'
import type { CaseFile } from '../../case.ts'
import { need } from '../../needs.ts'
import { complete, first, never } from '../../stage.ts'

const PER_MS = 400
const MAX = 5

export const rateLimits: CaseFile = {
  level: 'port',
  concept: 'Rate limits',
  cases: [
    {
      // A75
      name: 'no window holds more claims of a type than its limit, over all views',
      guarantees: ['I10'],
      ...need(limits),
      async run(stage) {
        const limit = { max: MAX, perMs: PER_MS }
        await stage.engine.enqueue(stage.jobs(30))
        const consumers = [await stage.consume({ limit }), await stage.consume({ limit, on: await stage.other() })]
        const startedMs: number[] = []
        for (let turn = 0; turn < 40 && startedMs.length < 20; turn += 1) {
          const claims = await Promise.all(consumers.map((consumer) => stage.take(consumer, 3)))
          for (const _ of claims.flat()) startedMs.push(stage.nowMs)
          await stage.harness.advance(PER_MS / 8)
        }
        assert.ok(startedMs.length >= 20, 'the limit held back more than it may')
        for (const [index, fromMs] of startedMs.entries()) {
          const inWindow = startedMs.slice(index).filter((atMs) => atMs - fromMs < PER_MS)
          assert.ok(inWindow.length <= MAX, `${inWindow.length} claims in a window of ${PER_MS} ms, ${MAX} allowed`)
        }
      },
    },
    {
      name: 'one large claim is cut at the limit and the rest stays in the queue',
      guarantees: ['I10'],
      ...need(limits),
      async run(stage) {
        await stage.engine.enqueue(stage.jobs(10))
        const consumer = await stage.consume({ limit: { max: 3, perMs: PER_MS } })
        assert.equal((await stage.take(consumer, 10)).length, 3)
        assert.equal((await stage.take(consumer, 10)).length, 0)
        await stage.expectCounts({ ready: 7, inProgress: 3 })
        await stage.harness.advance(PER_MS + 1)
        assert.equal((await stage.take(consumer, 10)).length, 3)
      },
    },
    {
      name: 'a limit of one type leaves the others alone',
      guarantees: ['I10'],
      ...need(limits),
      async run(stage) {
        const [slow, fast] = [`${stage.type}-slow`, `${stage.type}-fast`]
        await stage.engine.enqueue([...stage.jobs(5, { type: slow, priority: 1 }), ...stage.jobs(5, { type: fast })])
        const types = [
          { type: slow, leaseMs: stage.leaseMs, limit: { max: 1, perMs: PER_MS } },
          { type: fast, leaseMs: stage.leaseMs },
        ]
        const leases = await stage.take(await stage.consume({ types }), 10)
        const claimed = (type: string): number => leases.filter(({ job }) => job.type === type).length
        assert.deepEqual([claimed(slow), claimed(fast)], [1, 5])
      },
    },
    {
      name: 'a waiting claim receives the job when its window frees',
      guarantees: ['I6', 'I10'],
      ...need(limits),
      async run(stage) {
        await stage.engine.enqueue(stage.jobs(2))
        const consumer = await stage.consume({ limit: { max: 1, perMs: PER_MS } })
        await stage.settle(consumer, await stage.one(consumer), complete)
        const startedMs = stage.nowMs
        const waiting = consumer.claim({ max: 1, waitMs: PER_MS * 10, signal: never })
        const leases = await stage.within(PER_MS * 4, waiting, 'the claim that waits for the window')
        assert.equal(leases.length, 1)
        assert.equal(first(leases).attempt, 1)
        assert.ok(stage.nowMs - startedMs >= PER_MS - 50, 'the limit let a claim through too early')
      },
    },
  ],
}
