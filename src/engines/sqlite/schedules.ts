import type { Receipt } from '../../engine/engine.ts'
import type { ScheduleRecord, Schedules } from '../../engine/schedules.ts'
import type { NewJob } from '../../job/job.ts'
import type { SqliteCore } from './core.ts'
import { insertJobs } from './enqueue.ts'
import { FIND_REVISION, FIND_SCHEDULE, LIST_SCHEDULES, REMOVE_SCHEDULE, SAVE_SCHEDULE } from './schedule-statements.ts'

interface ScheduleRow {
  readonly name: string
  readonly revision: string
  readonly next_at_ms: number | null
  readonly body: string
}

export function createSchedules(core: SqliteCore): Schedules {
  const { connection } = core
  return {
    list: () =>
      core.read('schedules', () => (connection.prepare(LIST_SCHEDULES).all({}) as ScheduleRow[]).map(toRecord)),
    find: (name) =>
      core.read('schedule', () => {
        const row = connection.prepare(FIND_SCHEDULE).get({ name }) as ScheduleRow | undefined
        return row === undefined ? null : toRecord(row)
      }),
    async save(record, expected, jobs) {
      const receipts = await core.write('schedule', (individually) => {
        core.assertUsable()
        return save(core, { record, expected, jobs, individually })
      })
      if (receipts !== null && receipts.length > 0) core.wakeups.notify()
      return receipts
    },
    remove: (name) =>
      core.write('unschedule', () => Number(connection.prepare(REMOVE_SCHEDULE).run({ name }).changes) > 0),
  }
}

interface Saving {
  readonly record: ScheduleRecord
  readonly expected: string | null
  readonly jobs: readonly NewJob[]
  readonly individually: boolean
}

function save({ connection, clock }: SqliteCore, saving: Saving): readonly Receipt[] | null {
  const { record, expected, jobs, individually } = saving
  const { name, revision, nextAtMs, body } = record
  const stored = connection.prepare(FIND_REVISION).get({ name }) as { revision: string } | undefined
  if ((stored?.revision ?? null) !== expected) return null
  connection.prepare(SAVE_SCHEDULE).run({ name, revision, nextAtMs, body })
  return insertJobs(connection, jobs, { nowMs: clock.nowMs(), individually })
}

function toRecord(row: ScheduleRow): ScheduleRecord {
  return { name: row.name, revision: row.revision, nextAtMs: row.next_at_ms, body: row.body }
}
