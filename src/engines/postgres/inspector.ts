import type { Controls, Counts, Inspector, TypeCounts } from '../../engine/engine.ts'
import { storable } from '../../job/error-record.ts'
import type { JobView } from '../../job/job.ts'
import type { PostgresCore } from './core.ts'
import type { Queries } from './database.ts'
import { readHistory } from './history.ts'
import { CANCEL, COUNT_JOBS, FIND_JOBS, listJobs, OLDEST_DUE } from './inspect-statements.ts'
import { toStatus, toView, type ViewRow } from './rows.ts'

export async function findRow(queries: Queries, id: string): Promise<ViewRow | null> {
  return (await queries.rows<ViewRow>(FIND_JOBS, [id]))[0] ?? null
}

function isOver(view: JobView): boolean {
  return view.state === 'completed' || view.state === 'dead_letter'
}

export function createInspector(core: PostgresCore): Inspector {
  const find = async (id: string): Promise<JobView | null> => {
    const row = await core.call('find', (database) => findRow(database, id))
    return row === null ? null : toView(row)
  }
  return {
    async find(ids) {
      if (ids.length === 0) return []
      const rows = await core.call('find', (database) => database.rows<ViewRow>(FIND_JOBS, ids))
      const views = new Map(rows.map((row) => [row.id, toView(row)]))
      return ids.map((id) => views.get(id) ?? null)
    },
    async list(filter) {
      const status = filter.state === undefined ? null : toStatus(filter.state)
      if (filter.state !== undefined && status === null) return []
      const { type, before, limit } = filter
      const statement = listJobs(status, { type: type !== undefined, before: before !== undefined })
      const values = [limit, type, before].filter((value) => value !== undefined)
      return (await core.call('list', (database) => database.rows<ViewRow>(statement, ...values))).map(toView)
    },
    async oldestDue() {
      const [row] = await core.call('oldestDue', (database) => database.rows<ViewRow>(OLDEST_DUE))
      return row === undefined ? null : toView(row)
    },
    history: (id) =>
      core.call('history', async (database) => {
        const row = await findRow(database, id)
        return row === null ? [] : readHistory(database, row)
      }),
    async waitFor(id, { waitMs, signal }) {
      const untilMs = core.clock.monotonicMs() + waitMs
      const stopExpecting = core.farewells.expect(id)
      try {
        for (;;) {
          const seen = core.results.changes
          const view = (await find(id)) ?? core.farewells.of(id)
          const leftMs = untilMs - core.clock.monotonicMs()
          if (view === null || isOver(view) || leftMs <= 0 || signal.aborted) return view
          await core.results.wait(leftMs, { seen, signal })
        }
      } finally {
        stopExpecting()
      }
    },
  }
}

interface CountRow {
  readonly type: string
  readonly ready: number
  readonly delayed: number
  readonly in_progress: number
  readonly completed: number
  readonly dead: number
}

export async function countJobs(core: PostgresCore): Promise<Counts> {
  const rows = await core.call('counts', (database) => database.rows<CountRow>(COUNT_JOBS))
  return Object.fromEntries(
    rows.map(({ type, in_progress: inProgress, ready, delayed, completed, dead }): [string, TypeCounts] => [
      type,
      { ready, delayed, inProgress, completed, dead },
    ]),
  )
}

export function createControls(core: PostgresCore): Controls {
  return {
    async cancel(id, { who, reason }) {
      const ended = await core.call('cancel', (database) => database.rows(CANCEL, id, storable(who), storable(reason)))
      if (ended.length === 0) return false
      core.changed()
      return true
    },
  }
}
