import type { Receipt } from '../../engine/engine.ts'
import type { ScheduleRecord, Schedules } from '../../engine/schedules.ts'
import type { NewJob } from '../../job/job.ts'
import { toIso } from '../../time/iso.ts'
import type { PostgresCore } from './core.ts'
import type { Queries } from './database.ts'
import { insertJobs } from './enqueue.ts'
import { ADD_SCHEDULE, CHANGE_SCHEDULE, FIND_SCHEDULE, LIST_SCHEDULES, REMOVE_SCHEDULE } from './schedule-statements.ts'

interface ScheduleRow {
  readonly name: string
  readonly revision: string
  readonly next_ms: number | null
  readonly body: string
}

export function createSchedules(core: PostgresCore): Schedules {
  return {
    list: () =>
      core.call('schedules', async (database) => (await database.rows<ScheduleRow>(LIST_SCHEDULES)).map(toRecord)),
    find: (name) =>
      core.call('schedule', async (database) => {
        const [row] = await database.rows<ScheduleRow>(FIND_SCHEDULE, name)
        return row === undefined ? null : toRecord(row)
      }),
    async save(record, expected, jobs) {
      const receipts = await core.call('schedule', (database) =>
        database.transaction((queries) => save(queries, record, expected, jobs)),
      )
      if (receipts !== null && receipts.length > 0) core.added({ mayPrecede: true })
      return receipts
    },
    remove: (name) =>
      core.call('unschedule', async (database) => (await database.rows(REMOVE_SCHEDULE, name)).length > 0),
  }
}

/** The record goes first: who finds another revision has stored no job. */
async function save(
  queries: Queries,
  { name, revision, nextAtMs, body }: ScheduleRecord,
  expected: string | null,
  jobs: readonly NewJob[],
): Promise<readonly Receipt[] | null> {
  const values = [name, revision, nextAtMs === null ? null : toIso(nextAtMs), body]
  const saved =
    expected === null
      ? await queries.rows(ADD_SCHEDULE, ...values)
      : await queries.rows(CHANGE_SCHEDULE, ...values, expected)
  return saved.length === 0 ? null : insertJobs(queries, jobs)
}

function toRecord(row: ScheduleRow): ScheduleRecord {
  return { name: row.name, revision: row.revision, nextAtMs: row.next_ms, body: row.body }
}
