import type { Controls, Counts, Inspector, JobFilter, TypeCounts } from '../../engine/engine.ts'
import type { JobView } from '../../job/job.ts'
import type { JobState } from '../../job/states.ts'
import { toIso } from '../../time/iso.ts'
import type { SqliteCore } from './core.ts'
import { forgetPredecessors, reviewSuccessors } from './dependencies.ts'
import { readHistory, recordEvent } from './history.ts'
import { listRows } from './listing.ts'
import { toMs, toView, type ViewRow } from './rows.ts'
import {
  COUNT_DEAD,
  COUNT_HELD_BACK,
  COUNT_READY,
  COUNT_STATES,
  END_LIVE,
  FIND_JOB,
  OLDEST_DUE,
  UNBLOCK_LATEST,
} from './statements.ts'

export function findRow(core: SqliteCore, id: string): ViewRow | undefined {
  return core.connection.prepare(FIND_JOB).get({ id }) as ViewRow | undefined
}

function isOver(view: JobView): boolean {
  return view.state === 'completed' || view.state === 'dead_letter'
}

export function createInspector(core: SqliteCore): Inspector {
  const viewOf = (id: string): JobView | null => {
    const row = findRow(core, id)
    return row === undefined ? null : toView(row)
  }
  return {
    find: (ids) => core.read('find', () => ids.map(viewOf)),
    list: (filter: JobFilter) => core.read('list', () => listRows(core.connection, filter).map(toView)),
    oldestDue: () =>
      core.read('oldestDue', () => {
        const now = toIso(core.clock.nowMs())
        const row = core.connection.prepare(OLDEST_DUE).get({ now }) as ViewRow | undefined
        return row === undefined ? null : toView(row)
      }),
    history: (id) =>
      core.read('history', () => {
        const row = findRow(core, id)
        return row === undefined ? [] : readHistory(core.connection, row)
      }),
    async waitFor(id, { waitMs, signal }) {
      const untilMs = core.clock.monotonicMs() + waitMs
      const stopExpecting = core.farewells.expect(id)
      try {
        for (;;) {
          const view = (await core.read('find', () => viewOf(id))) ?? core.farewells.of(id)
          const leftMs = untilMs - core.clock.monotonicMs()
          if (view === null || isOver(view) || leftMs <= 0 || signal.aborted) return view
          await core.wakeups.wait(leftMs, signal)
        }
      } finally {
        stopExpecting()
      }
    },
  }
}

const NO_JOBS: TypeCounts = { ready: 0, delayed: 0, inProgress: 0, completed: 0, dead: 0 }

interface TypeCount {
  readonly type: string
  readonly jobs: number
}

export function countJobs(core: SqliteCore): Promise<Counts> {
  return core.read('counts', () => {
    const { connection } = core
    const now = toIso(core.clock.nowMs())
    const counts = new Map<string, TypeCounts>()
    const add = (type: string, jobs: Partial<TypeCounts>): void => {
      counts.set(type, { ...(counts.get(type) ?? NO_JOBS), ...jobs })
    }
    const due = new Map<string, number>()
    for (const statement of [COUNT_READY, COUNT_HELD_BACK]) {
      const rows = connection.prepare(statement).all({ now }) as TypeCount[]
      for (const { type, jobs } of rows) due.set(type, (due.get(type) ?? 0) + jobs)
    }
    for (const { type, status, jobs } of connection.prepare(COUNT_STATES).all() as (TypeCount & {
      status: JobState
    })[]) {
      const ready = due.get(type) ?? 0
      if (status === 'queued') add(type, { ready, delayed: jobs - ready })
      else
        add(type, status === 'in_progress' ? { inProgress: jobs } : status === 'completed' ? { completed: jobs } : {})
    }
    for (const { type, jobs } of connection.prepare(COUNT_DEAD).all() as TypeCount[]) add(type, { dead: jobs })
    return Object.fromEntries(counts)
  })
}

export function createControls(core: SqliteCore): Controls {
  return {
    async cancel(id, { who, reason }) {
      const cancelled = await core.write('cancel', () => {
        const row = findRow(core, id)
        const nowMs = core.clock.nowMs()
        const now = toIso(nowMs)
        const { changes } = core.connection.prepare(END_LIVE).run({ id, ended: 'cancelled', now })
        if (row === undefined || Number(changes) === 0) return false
        recordEvent(
          core.connection,
          {
            id,
            name: 'cancelled',
            attempt: row.attempts,
            worker: null,
            detail: { who, reason, startedAtMs: toMs(row.started_at) },
          },
          nowMs,
        )
        reviewSuccessors(core.connection, id, nowMs)
        if (row.predecessors !== null) forgetPredecessors(core.connection, id)
        if (row.latest_key !== null)
          core.connection.prepare(UNBLOCK_LATEST).run({ type: row.type, latestKey: row.latest_key, now })
        return true
      })
      if (cancelled) core.changed()
      return cancelled
    },
  }
}
