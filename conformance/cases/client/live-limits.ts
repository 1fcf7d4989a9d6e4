import assert from 'node:assert/strict'
import type { Mill } from '../../../src/client/mill.ts'
import { limits, slots } from '../../bounds.ts'
import type { CaseFile } from '../../case.ts'
import { numberedJob, record, SOON_MS } from '../../crew.ts'
import { deadLetters, need } from '../../needs.ts'
import { limiting } from '../../operations.ts'
import { gate, rejection, type Stage } from '../../stage.ts'

/** How long workers have to take up a limit. */
const HEEDED_MS = 2_000

/** Ample for a claim by a worker that did not heed. */
const SETTLED_MS = 200

const numbers = (count: number) => Array.from({ length: count }, (_, n) => ({ n }))

/** Resolves when the workers of all mills have taken up a change of limits. */
function heeded(stage: Stage, mills: readonly Mill[]) {
  const heard = Promise.all(mills.map((mill) => mill.events.next('worker.limited')))
  return stage.within(HEEDED_MS, heard, 'all workers’ heed')
}

export const liveLimits: CaseFile = {
  level: 'client',
  concept: 'Limits changed while workers run',
  cases: [
    {
      name: 'a concurrency that is set holds in every worker within two seconds and after a restart, and the definition’s after a reset',
      guarantees: ['I12'],
      ...need(limiting),
      async run(stage) {
        const mills = [await stage.mill(), await stage.mill(await stage.other())] as const
        const open = gate()
        const job = numberedJob(stage, { concurrency: 3, run: () => open.opened })
        const seen = mills.map((mill) => record(mill))
        const workers = [await mills[0].work([job]), await mills[1].work([job])] as const
        const taken = heeded(stage, mills)
        const change = await mills[1].limits.set(stage.type, { concurrency: 1 }, { who: 'ann', reason: 'test' })
        assert.deepEqual(change, { before: {}, after: { concurrency: 1 } })
        for (const { types } of await taken)
          assert.deepEqual(types, [{ type: stage.type, concurrency: 1, limit: null }])
        await workers[0].stop()
        const again = await mills[0].work([job])
        await mills[0].enqueueMany(job, numbers(8))
        const running = () => [again.running, workers[1].running]
        await stage.until(SOON_MS, () => running().join() === '1,1', 'one job in each worker')
        const [override] = await mills[0].limits.list()
        assert.deepEqual(
          { ...override, sinceMs: 0 },
          { type: stage.type, concurrency: 1, who: 'ann', reason: 'test', sinceMs: 0 },
        )
        await stage.expectCounts({ ready: 6, inProgress: 2 })
        const reset = heeded(stage, mills)
        assert.equal(await mills[0].limits.reset(stage.type), true)
        await reset
        await stage.until(SOON_MS, () => running().join() === '3,3', 'three jobs in each worker')
        assert.equal(await mills[0].limits.reset(stage.type), false)
        open.open()
        await stage.until(SOON_MS, () => seen.flatMap(({ settled }) => settled).length === 8, 'the end of all jobs')
      },
    },
    {
      name: 'a rate limit that is set holds over all workers from the next claim on, also for a type without one, and so does a change of it',
      guarantees: ['I10', 'I12'],
      ...need(limiting, limits),
      async run(stage) {
        const mills = [await stage.mill(), await stage.mill(await stage.other())] as const
        let starts = 0
        const job = numberedJob(stage, {
          run: () => {
            starts += 1
          },
        })
        for (const mill of mills) await mill.work([job])
        const steps = [
          [{ max: 2, per: '1h' }, 2],
          [{ max: 5, per: '2h' }, 5],
          [null, 8],
        ] as const
        for (const [limit, started] of steps) {
          const taken = heeded(stage, mills)
          await mills[0].limits.set(stage.type, { limit })
          await taken
          if (starts === 0) await mills[1].enqueueMany(job, numbers(8))
          await stage.until(SOON_MS, () => starts >= started, `start ${started}`)
          if (limit === null) continue
          // A start too many would come with the look that the jobs have caused.
          await stage.harness.advance(SETTLED_MS)
          assert.equal(starts, started)
        }
      },
    },
    {
      name: 'a concurrency over all workers is changed for all of them together',
      guarantees: ['I8', 'I12'],
      ...need(limiting, slots),
      async run(stage) {
        const mills = [await stage.mill(), await stage.mill(await stage.other())] as const
        const open = gate()
        const job = numberedJob(stage, { concurrency: { max: 1 }, run: () => open.opened })
        const seen = mills.map((mill) => record(mill))
        const workers = [await mills[0].work([job]), await mills[1].work([job])] as const
        await mills[0].enqueueMany(job, numbers(6))
        const running = () => workers[0].running + workers[1].running
        await stage.until(SOON_MS, () => running() === 1, 'one job')
        const taken = heeded(stage, mills)
        await mills[0].limits.set(stage.type, { concurrency: 3 })
        await taken
        await stage.until(SOON_MS, () => running() === 3, 'three jobs')
        await stage.harness.advance(SETTLED_MS)
        assert.equal(running(), 3)
        open.open()
        await stage.until(SOON_MS, () => seen.flatMap(({ settled }) => settled).length === 6, 'the end of all jobs')
      },
    },
    {
      name: 'what is set is checked, each field is kept until it is set anew, and the audit has before and after',
      guarantees: ['I12'],
      ...need(limiting, deadLetters),
      async run(stage) {
        const mill = await stage.mill()
        const by = { who: 'ann', reason: 'test' }
        const misspelt: object = { concurrencies: 1 }
        for (const spec of [{}, { concurrency: 0 }, { limit: { max: 0, per: '1s' } }, misspelt]) {
          assert.equal(await rejection(mill.limits.set(stage.type, spec, by)), 'ERR_OPTION_INVALID')
        }
        await mill.limits.set(stage.type, { concurrency: 2 }, by)
        await mill.limits.set(stage.type, { limit: null }, by)
        await mill.limits.reset(stage.type, by)
        const entries = (await stage.engine.deadLetters?.audit({ limit: 10 })) ?? []
        assert.deepEqual(
          entries.map(({ action, who, type, before, after }) => [action, who, type, before, after]),
          [
            ['limits-reset', 'ann', stage.type, { concurrency: 2, limit: null }, null],
            ['limits-change', 'ann', stage.type, { concurrency: 2 }, { concurrency: 2, limit: null }],
            ['limits-change', 'ann', stage.type, {}, { concurrency: 2 }],
          ],
        )
      },
    },
  ],
}
