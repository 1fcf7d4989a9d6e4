import assert from 'node:assert/strict'
import { slots } from '../../bounds.ts'
import type { CaseFile } from '../../case.ts'
import { meter, numberedJob, record, SOON_MS } from '../../crew.ts'
import { inspection, need } from '../../needs.ts'

const numbers = (count: number) => Array.from({ length: count }, (_, n) => ({ n }))

export const workerSlots: CaseFile = {
  level: 'client',
  concept: 'Slots over all workers',
  cases: [
    {
      name: 'no more handlers of a type run at once than it has slots, over three workers, and all slots are used',
      guarantees: ['I10'],
      ...need(slots),
      async run(stage) {
        const mills = [await stage.mill(), await stage.mill(await stage.other()), await stage.mill()]
        const running = meter()
        const job = numberedJob(stage, {
          concurrency: { max: 3 },
          run: async () => {
            running.enter()
            await stage.harness.clock.sleep(20)
            running.leave()
          },
        })
        await mills[0]?.enqueueMany(job, numbers(20))
        const seen = mills.map((mill) => record(mill))
        for (const mill of mills) await mill.work([job], { concurrency: 10, poll: 50 })
        const settled = () => seen.reduce((sum, { settled: own }) => sum + own.length, 0)
        await stage.until(2 * SOON_MS, () => settled() === 20, 'the end of all jobs')
        assert.equal(running.most, 3)
      },
    },
    {
      name: 'no more handlers of a tenant run at once than it has slots, and no tenant waits for another',
      guarantees: ['I6', 'I10'],
      ...need(slots),
      async run(stage) {
        const mills = [await stage.mill(), await stage.mill(await stage.other())]
        const meters = { big: meter(), small: meter(), none: meter() }
        const started: string[] = []
        const job = numberedJob(stage, {
          concurrency: { max: 2, by: 'tenant' },
          run: async ({ job: { tenant } }) => {
            const own = tenant === null ? 'none' : tenant.orgId === 'big' ? 'big' : 'small'
            started.push(own)
            meters[own].enter()
            await stage.harness.clock.sleep(20)
            meters[own].leave()
          },
        })
        const [mill] = mills
        assert.ok(mill)
        await mill.enqueueMany(job, numbers(12), { tenant: { orgId: 'big' } })
        await mill.enqueueMany(job, numbers(3), { tenant: { orgId: 'small' } })
        await mill.enqueueMany(job, numbers(3))
        const seen = mills.map((each) => record(each))
        for (const each of mills) await each.work([job], { concurrency: 3, poll: 50 })
        const settled = () => seen.reduce((sum, { settled: own }) => sum + own.length, 0)
        await stage.until(2 * SOON_MS, () => settled() === 18, 'the end of all jobs')
        assert.equal(meters.big.most, 2)
        assert.ok(Math.max(meters.small.most, meters.none.most) <= 2)
        const early = new Set(started.slice(0, 6))
        assert.deepEqual([...early].sort(), ['big', 'none', 'small'], 'a tenant waited behind the backlog of another')
      },
    },
    {
      name: 'a handler that times out gives its slot to the next job, and so does one whose worker stops',
      guarantees: ['I6', 'I10'],
      ...need(slots, inspection),
      async run(stage) {
        const mill = await stage.mill()
        const started: number[] = []
        const job = numberedJob(stage, {
          concurrency: { max: 1, by: 'tenant' },
          attempts: 2,
          run: ({ payload: { n }, signal }) => {
            const isFirst = !started.includes(n)
            started.push(n)
            if (n === 3 || !isFirst) return n
            return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
          },
        })
        const tenant = { orgId: 'ann' }
        await mill.enqueue(job, { n: 1 }, { tenant, timeout: 100, attempts: 1 })
        const receipts = await mill.enqueueMany(job, [{ n: 2 }, { n: 3 }], { tenant })
        const worker = await mill.work([job], { poll: 50, drain: 0 })
        await stage.until(SOON_MS, () => started.includes(2), 'the start behind the one that timed out')
        await stage.within(SOON_MS, worker.stop(), 'the stop')
        assert.deepEqual(started, [1, 2])
        const next = await stage.mill(await stage.other())
        await next.work([job], { poll: 50 })
        const results = Promise.all(receipts.map((receipt) => next.result(receipt, { timeout: '20s' })))
        assert.deepEqual(await stage.within(SOON_MS, results, 'the jobs behind the worker that stopped'), [2, 3])
      },
    },
  ],
}
