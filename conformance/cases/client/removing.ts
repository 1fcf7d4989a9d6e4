import assert from 'node:assert/strict'
import type { CaseFile } from '../../case.ts'
import { numberedJob, record, SOON_MS } from '../../crew.ts'
import { inspection, need, requeue, retention } from '../../needs.ts'

const numbers = (count: number) => Array.from({ length: count }, (_, n) => ({ n }))

export const removing: CaseFile = {
  level: 'client',
  concept: 'Jobs that are removed as they finish',
  cases: [
    {
      // A44: N=5, run 10 jobs, 5 remain.
      name: 'of ten jobs enqueued with removeOnComplete 5 the last five remain',
      guarantees: ['I1'],
      ...need(retention),
      async run(stage) {
        const mill = await stage.mill()
        const seen = record(mill)
        const job = numberedJob(stage, { run: () => 'done' })
        await mill.enqueueMany(job, numbers(10), { removeOnComplete: 5 })
        await mill.work([job])
        await stage.until(SOON_MS, () => seen.settled.length === 10, 'all outcomes')
        await stage.expectCounts({ completed: 5 })
      },
    },
    {
      // A44 A53: true leaves none, and false at one enqueue goes before the definition.
      name: 'a definition with removeOnComplete leaves no job but those that were told to stay',
      guarantees: ['I1'],
      ...need(retention),
      async run(stage) {
        const mill = await stage.mill()
        const seen = record(mill)
        const job = numberedJob(stage, { removeOnComplete: true, run: () => 'done' })
        await mill.work([job])
        await mill.enqueueMany(job, numbers(4))
        await stage.until(SOON_MS, () => seen.settled.length === 4, 'all outcomes')
        await stage.expectCounts({})
        await mill.enqueue(job, { n: 5 }, { removeOnComplete: false })
        await stage.until(SOON_MS, () => seen.settled.length === 5, 'the last outcome')
        await stage.expectCounts({ completed: 1 })
      },
    },
    {
      // A45: N=5, fail 10 jobs, 5 remain.
      name: 'of ten jobs that die with removeOnFail 5 the last five remain',
      guarantees: ['I9'],
      ...need(retention, requeue),
      async run(stage) {
        const mill = await stage.mill()
        const seen = record(mill)
        const job = numberedJob(stage, {
          attempts: 1,
          removeOnFail: 5,
          run: () => {
            throw new Error('always')
          },
        })
        await mill.enqueueMany(job, numbers(10))
        await mill.work([job])
        await stage.until(SOON_MS, () => seen.settled.length === 10, 'all outcomes')
        await stage.expectCounts({ dead: 5 })
      },
    },
    {
      name: 'the result of a job that is removed as it completes reaches who waits for it, and nobody later',
      guarantees: ['I1'],
      ...need(retention, inspection),
      async run(stage) {
        const mill = await stage.mill()
        const job = numberedJob(stage, { removeOnComplete: true, run: () => 'done' })
        const receipt = await mill.enqueue(job, { n: 1 })
        const result = mill.result(receipt)
        await mill.work([job])
        assert.equal(await stage.within(SOON_MS, result, 'the result'), 'done')
        await assert.rejects(mill.result(receipt), { code: 'ERR_JOB_UNKNOWN', message: /removeOnComplete/ })
      },
    },
  ],
}
