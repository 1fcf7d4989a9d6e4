import type { Pauses } from '../../engine/pauses.ts'
import type { SqliteCore } from './core.ts'
import { LIST_PAUSES, PAUSE, RESUME } from './presence-statements.ts'

interface PauseRow {
  readonly type: string
  readonly who: string
  readonly reason: string
  readonly since_ms: number
}

export function createPauses(core: SqliteCore): Pauses {
  const { connection, clock } = core
  return {
    pause: (type, { who, reason }) =>
      core.write('pause', () => {
        const { changes } = connection.prepare(PAUSE).run({ type, who, reason, now: clock.nowMs() })
        return Number(changes) > 0
      }),
    resume: (type) => core.write('resume', () => Number(connection.prepare(RESUME).run({ type }).changes) > 0),
    list: () =>
      core.read('pauses', () => {
        const rows = connection.prepare(LIST_PAUSES).all({}) as PauseRow[]
        return rows.map(({ type, who, reason, since_ms }) => ({ type, who, reason, sinceMs: since_ms }))
      }),
  }
}
