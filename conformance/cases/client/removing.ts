import assert from 'node:assert/strict'
import type { Mill } from '../../../src/client/mill.ts'
import type { EnqueueOptions } from '../../../src/job/options.ts'
import type { CaseFile } from '../../case.ts'
import { numberedJob, record, SOON_MS } from '../../crew.ts'
import { deadLetters, inspection, need, retention } from '../../needs.ts'
import type { Stage } from '../../stage.ts'

const fails = () => {
  throw new Error('always')
}

/** Enqueues one job after another, so that their order is certain, and answers their ids. */
async function runInTurn(
  stage: Stage,
  mill: Mill,
  job: ReturnType<typeof numberedJob>,
  options: readonly EnqueueOptions[],
): Promise<readonly string[]> {
  const seen = record(mill)
  const ids: string[] = []
  for (const [n, each] of options.entries()) {
    const { id } = await mill.enqueue(job, { n }, each)
    ids.push(id)
    await stage.until(SOON_MS, () => seen.settled.length === n + 1, `the outcome of job ${n}`)
  }
  return ids
}

/** The ids of the dead letters, and of those that the audit says went by themselves. */
async function lettersOf(stage: Stage) {
  const listed = await stage.engine.deadLetters?.list({ limit: 100 })
  const entries = await stage.engine.deadLetters?.audit({ limit: 100, action: 'purge' })
  return { left: listed?.map(({ job }) => job.id).sort(), purged: entries?.map(({ jobId }) => jobId).sort() }
}

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
      ...need(retention, deadLetters),
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
    {
      name: 'removal options: a dead letter with removeOnFail goes alone, and the others of its type stay',
      guarantees: ['I9'],
      ...need(retention, deadLetters),
      async run(stage) {
        const mill = await stage.mill()
        const job = numberedJob(stage, { attempts: 1, run: fails })
        await mill.work([job])
        const ids = await runInTurn(stage, mill, job, [{}, {}, {}, { removeOnFail: true }, {}, { removeOnFail: 0 }])
        const [a, b, c, gone, d, goneToo] = ids
        assert.deepEqual(await lettersOf(stage), { left: [a, b, c, d], purged: [gone, goneToo] })
      },
    },
    {
      name: 'removal options: a completed job with removeOnComplete goes alone, and other results of its type stay',
      guarantees: ['I1'],
      ...need(retention, inspection),
      async run(stage) {
        const mill = await stage.mill()
        const job = numberedJob(stage, { run: ({ payload }) => payload.n })
        await mill.work([job])
        const ids = await runInTurn(stage, mill, job, [{}, {}, { removeOnComplete: true }, {}, { removeOnComplete: 0 }])
        const results = await Promise.all(ids.map((id) => mill.result(id).catch(codeOf)))
        assert.deepEqual(results, [0, 1, 'ERR_JOB_UNKNOWN', 3, 'ERR_JOB_UNKNOWN'])
      },
    },
    {
      name: 'removal options: a number given to one job counts only for jobs that were given one',
      guarantees: ['I9'],
      ...need(retention, deadLetters),
      async run(stage) {
        const mill = await stage.mill()
        const job = numberedJob(stage, { attempts: 1, run: fails })
        await mill.work([job])
        const one = { removeOnFail: 1 }
        const ids = await runInTurn(stage, mill, job, [
          {},
          { removeOnFail: false },
          {},
          one,
          one,
          { removeOnFail: 3 },
          one,
        ])
        const [a, b, c, first, second, ofThree, last] = ids
        // The one of three is not among the newest one, but it was told that three may stay.
        assert.deepEqual(await lettersOf(stage), {
          left: [a, b, c, ofThree, last].sort(),
          purged: [first, second].sort(),
        })
      },
    },
    {
      name: `removal options: a definition's number leaves those that were told to stay, and one job's number leaves those of the definition`,
      guarantees: ['I9'],
      ...need(retention, deadLetters),
      async run(stage) {
        const mill = await stage.mill()
        const job = numberedJob(stage, { attempts: 1, removeOnFail: 2, run: fails })
        await mill.work([job])
        const ids = await runInTurn(stage, mill, job, [{ removeOnFail: false }, {}, {}, {}, { removeOnFail: 1 }])
        const [stays, oldest, ...rest] = ids
        assert.deepEqual(await lettersOf(stage), { left: [stays, ...rest], purged: [oldest] })
      },
    },
  ],
}

const codeOf = (error: unknown): unknown => (error instanceof Error && 'code' in error ? error.code : error)
