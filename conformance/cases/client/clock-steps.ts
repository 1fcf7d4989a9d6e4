import assert from 'node:assert/strict'
import type { CaseFile } from '../../case.ts'
import { numberedJob, record, SOON_MS } from '../../crew.ts'
import { need, reaping, schedules } from '../../needs.ts'

const HOUR_MS = 3_600_000

export const steppedWorkers: CaseFile = {
  level: 'client',
  concept: 'Workers and keepers while the clock is set',
  cases: [
    {
      name: 'a running job of a worker that renews survives every step of the clock, and the step is told',
      guarantees: ['I3', 'I4', 'I6'],
      ...need(reaping),
      async run(stage) {
        const [mill, rival] = [await stage.mill(), await stage.mill(await stage.other())]
        let starts = 0
        const job = numberedJob(stage, {
          run: async () => {
            starts += 1
            await stage.harness.clock.sleep(stage.leaseMs * 4)
          },
        })
        const seen = record(mill)
        const told: number[] = []
        mill.events.on('clock.stepped', ({ stepMs }) => told.push(Math.round(stepMs / HOUR_MS)))
        await mill.enqueue(job, { n: 1 })
        await mill.work([job], { reap: stage.leaseMs / 4 })
        await stage.until(SOON_MS, () => starts === 1, 'the start')
        await rival.work([job], { reap: stage.leaseMs / 4 })
        await stage.step(HOUR_MS)
        // In small steps: what a store is asked takes real time, and virtual time must not run ahead of it.
        const { clock } = stage.harness
        const sinceMs = clock.monotonicMs()
        const isLater = (): boolean => clock.monotonicMs() - sinceMs >= stage.leaseMs * 1.5
        await stage.until(stage.leaseMs * 2, isLater, 'more than a lease')
        await stage.step(-2 * HOUR_MS)
        await stage.until(stage.leaseMs * 4 + SOON_MS, () => seen.settled.length === 1, 'the end')
        assert.deepEqual([starts, seen.lost], [1, []])
        assert.deepEqual(told, [1, -2])
        await stage.expectCounts({ completed: 1 })
      },
    },
    {
      name: 'a schedule goes on within its next tick when the clock is set back, and runs no tick twice',
      guarantees: ['I6'],
      ...need(schedules),
      async run(stage) {
        const mill = await stage.mill()
        const job = numberedJob(stage, {})
        const ticks: number[] = []
        mill.events.on('schedule.fired', ({ tickMs }) => ticks.push(tickMs))
        const often = {
          name: 'often',
          type: job.type,
          cron: '* * * * * *',
          payload: { n: 1 },
          overlap: 'allow',
        } as const
        await mill.keep({ interval: 500, jobs: [job], schedules: [often] })
        await stage.until(10_000, () => ticks.length >= 2, 'two ticks')
        const before = ticks.length
        await stage.step(-HOUR_MS)
        await stage.until(10_000, () => ticks.length >= before + 2, 'two ticks after the clock was set back')
        assert.equal(new Set(ticks).size, ticks.length, 'a tick ran twice')
      },
    },
  ],
}
