import assert from 'node:assert/strict'
import type { CaseFile } from '../../case.ts'
import { numberedJob, SOON_MS } from '../../crew.ts'
import { inspection, need, schedules } from '../../needs.ts'

export const keeping: CaseFile = {
  level: 'client',
  concept: 'Schedules that run',
  cases: [
    {
      // A140 X066
      name: 'two keepers enqueue one run for each tick, and a worker runs it',
      guarantees: ['I2'],
      ...need(schedules),
      async run(stage) {
        const mills = [await stage.mill(), await stage.mill(await stage.other())]
        const ran: string[] = []
        const job = numberedJob(stage, { run: ({ job: { id } }) => void ran.push(id) })
        const [mill] = mills
        assert.ok(mill)
        const spec = { type: job, cron: '* * * * * *', payload: { n: 1 }, missed: 'all', limit: 3 } as const
        for (const each of mills) await each.keep({ interval: 200, jobs: [job] })
        await mill.schedules.upsert(stage.type, spec)
        await mill.work([job], { keeper: false })
        await stage.until(SOON_MS * 2, () => ran.length >= 3, 'three runs')
        await stage.harness.advance(1_100)
        assert.equal(new Set(ran).size, ran.length, 'a tick ran twice')
        assert.equal(ran.length, 3)
        const view = await mill.schedules.find(stage.type)
        assert.deepEqual([view?.runs, view?.nextAtMs], [3, null])
        assert.deepEqual(
          view?.past.map(({ what, jobId }) => [what, ran.includes(jobId ?? '')]),
          Array(3).fill(['run', true]),
        )
      },
    },
    {
      // A138 X063 X064
      name: 'a schedule changed at run time holds for other processes and outlives a restart',
      guarantees: ['I1'],
      ...need(schedules, inspection),
      async run(stage) {
        const mill = await stage.mill()
        const job = numberedJob(stage, { schedule: { cron: '0 3 * * *', payload: { n: 1 } }, run: () => null })
        const first = await mill.keep({ jobs: [job] })
        await mill.schedules.reschedule(stage.type, '0 5 * * *')
        await mill.schedules.pause(stage.type)
        await first.stop()
        const other = await stage.mill(await stage.other())
        await other.keep({ jobs: [job] })
        const view = await other.schedules.find(stage.type)
        assert.deepEqual([view?.cron, view?.paused, view?.nextAtMs, view?.payload], ['0 5 * * *', true, null, { n: 1 }])
        assert.equal(typeof (await other.schedules.resume(stage.type)).nextAtMs, 'number')
      },
    },
  ],
}
