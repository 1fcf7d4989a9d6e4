import assert from 'node:assert/strict'
import { Offline, Postpone } from '../../../src/errors.ts'
import type { CaseFile } from '../../case.ts'
import { numberedJob, record, SOON_MS } from '../../crew.ts'
import { need, retryDelay } from '../../needs.ts'

export const deferring: CaseFile = {
  level: 'client',
  concept: 'Jobs that their handlers defer',
  cases: [
    {
      name: 'Offline defers the job and uses no attempt',
      guarantees: ['I2'],
      ...need(retryDelay),
      async run(stage) {
        const mill = await stage.mill()
        const attempts: number[] = []
        const job = numberedJob(stage, {
          attempts: 2,
          run: ({ job: { attempt } }) => {
            attempts.push(attempt)
            if (attempts.length <= 3) throw new Offline('no network', { delay: 300 })
          },
        })
        const seen = record(mill)
        await mill.work([job])
        const { id } = await mill.enqueue(job, { n: 1 })
        await stage.until(SOON_MS, () => seen.settled.length === 4, 'all outcomes')
        assert.deepEqual(
          [attempts, seen.kinds(id)],
          [
            [1, 1, 1, 1],
            ['release', 'release', 'release', 'complete'],
          ],
        )
      },
    },
    {
      // X100
      name: 'Postpone runs the job again after its delay and uses no attempt, not even the only one',
      guarantees: ['I2'],
      ...need(retryDelay),
      async run(stage) {
        const mill = await stage.mill()
        const startsMs: number[] = []
        const attempts: number[] = []
        const job = numberedJob(stage, {
          attempts: 1,
          run: ({ job: { attempt } }) => {
            startsMs.push(stage.nowMs)
            attempts.push(attempt)
            if (attempts.length <= 3) throw new Postpone(300, 'waiting for 2 confirmations')
          },
        })
        const seen = record(mill)
        await mill.work([job])
        const { id } = await mill.enqueue(job, { n: 1 })
        await stage.until(SOON_MS, () => seen.settled.length === 4, 'all outcomes')
        const gaps = startsMs.slice(1).map((atMs, index) => atMs - (startsMs[index] ?? 0))
        assert.ok(Math.min(...gaps) >= 290, `starts ${gaps.join(', ')} ms apart`)
        assert.deepEqual(
          [attempts, seen.kinds(id)],
          [
            [1, 1, 1, 1],
            ['release', 'release', 'release', 'complete'],
          ],
        )
        if (stage.engine.inspector === undefined) return
        const released = (await mill.history(id)).filter(({ name }) => name === 'released')
        assert.deepEqual(
          released.map(({ detail }) => [detail?.reason, detail?.delayMs]),
          released.map(() => ['postponed: waiting for 2 confirmations', 300]),
        )
        assert.equal(released.length, 3)
      },
    },
    {
      name: 'Offline without a delay is deferred all the same, so that the job does not spin',
      guarantees: ['I2'],
      async run(stage) {
        const mill = await stage.mill()
        const startsMs: number[] = []
        const job = numberedJob(stage, {
          run: () => {
            startsMs.push(stage.nowMs)
            if (startsMs.length < 4) throw new Offline('no network', { delay: 0 })
          },
        })
        const seen = record(mill)
        await mill.work([job])
        const { id } = await mill.enqueue(job, { n: 1 })
        await stage.until(SOON_MS, () => seen.settled.length === 4, 'all outcomes')
        const gaps = startsMs.slice(1).map((atMs, index) => atMs - (startsMs[index] ?? 0))
        assert.ok(Math.min(...gaps) >= 90, `starts ${gaps.join(', ')} ms apart`)
        assert.deepEqual(seen.kinds(id), ['release', 'release', 'release', 'complete'])
      },
    },
  ],
}
