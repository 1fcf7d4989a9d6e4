import assert from 'node:assert/strict'
import { schedulesOf } from '../../../src/engine/capability-checks.ts'
import type { ScheduleRecord } from '../../../src/engine/schedules.ts'
import type { CaseFile } from '../../case.ts'
import { need, schedules } from '../../needs.ts'
import { idsOf } from '../../stage.ts'

const record = (name: string, revision: string, nextAtMs: number | null = 1_800_000_000_000): ScheduleRecord => ({
  name,
  revision,
  nextAtMs,
  body: JSON.stringify({ cron: '* * * * *', text: 'ein Tag – ein Lauf', nextAtMs }),
})

export const scheduling: CaseFile = {
  level: 'port',
  concept: 'Schedules',
  cases: [
    {
      // A128
      name: 'a stored schedule is read back as it is, by every view, and listed by name',
      guarantees: ['I1'],
      ...need(schedules),
      async run(stage) {
        const [one, other] = [schedulesOf(stage.engine), schedulesOf(await stage.other())]
        assert.deepEqual(await one.list(), [])
        assert.equal(await one.find('b'), null)
        const saved = [record('b', '1'), record('a', '1', null), record('c', '1')]
        for (const each of saved) assert.deepEqual(await one.save(each, null, []), [])
        assert.deepEqual(await other.find('b'), saved[0])
        assert.deepEqual(await other.list(), [saved[1], saved[0], saved[2]])
      },
    },
    {
      // A140 X066
      name: 'a schedule changes only with its current revision; otherwise nothing is enqueued',
      guarantees: ['I2', 'I3'],
      ...need(schedules),
      async run(stage) {
        const [one, other] = [schedulesOf(stage.engine), schedulesOf(await stage.other())]
        assert.equal(await one.save(record('a', '1'), 'none', [stage.job()]), null)
        assert.deepEqual(await one.save(record('a', '1'), null, []), [])
        assert.equal(await other.save(record('a', '2'), null, [stage.job()]), null)
        const saves = await Promise.all([
          one.save(record('a', '2'), '1', [stage.job()]),
          other.save(record('a', '3'), '1', [stage.job()]),
        ])
        assert.equal(saves.filter((receipts) => receipts !== null).length, 1, 'one tick was fired twice, or not at all')
        await stage.expectCounts({ ready: 1 })
        const revision = saves[0] === null ? '3' : '2'
        assert.equal((await one.find('a'))?.revision, revision)
        // A keeper that was paused in between does nothing.
        assert.equal(await one.save(record('a', '4'), '1', [stage.job()]), null)
        await stage.expectCounts({ ready: 1 })
      },
    },
    {
      // X066
      name: 'jobs saved with a schedule are enqueued in the same step, and wake a worker',
      guarantees: ['I1', 'I6'],
      ...need(schedules),
      async run(stage) {
        const timetable = schedulesOf(stage.engine)
        const jobs = stage.jobs(3)
        const receipts = await timetable.save(record('a', '1'), null, jobs)
        assert.deepEqual(
          receipts,
          jobs.map(({ id }) => ({ id, status: 'enqueued' })),
        )
        assert.equal((await timetable.find('a'))?.revision, '1')
        assert.deepEqual(idsOf(await stage.take(await stage.consume(), 5)), idsIn(jobs))
      },
    },
    {
      // A140 X066
      name: 'a run that was enqueued already is a duplicate, and the schedule still goes on',
      guarantees: ['I7'],
      ...need(schedules),
      async run(stage) {
        const timetable = schedulesOf(stage.engine)
        const job = stage.job()
        await timetable.save(record('a', '1'), null, [job])
        const again = await timetable.save(record('a', '2'), '1', [job])
        assert.deepEqual(again, [{ id: job.id, status: 'duplicate' }])
        assert.equal((await timetable.find('a'))?.revision, '2')
        await stage.expectCounts({ ready: 1 })
      },
    },
    {
      // X063 X064
      name: 'a removed schedule is gone for every view, and its jobs stay',
      guarantees: ['I1'],
      ...need(schedules),
      async run(stage) {
        const [one, other] = [schedulesOf(stage.engine), schedulesOf(await stage.other())]
        await one.save(record('a', '1'), null, [stage.job()])
        await one.save(record('b', '1'), null, [])
        assert.equal(await other.remove('a'), true)
        assert.equal(await one.remove('a'), false)
        assert.equal(await one.find('a'), null)
        assert.deepEqual(
          (await one.list()).map(({ name }) => name),
          ['b'],
        )
        assert.equal(await one.save(record('a', '2'), '1', [stage.job()]), null)
        await stage.expectCounts({ ready: 1 })
      },
    },
  ],
}

const idsIn = (jobs: readonly { readonly id: string }[]): readonly string[] => jobs.map(({ id }) => id)
