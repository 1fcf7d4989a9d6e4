import type { Pauses } from '../../engine/pauses.ts'
import { storable } from '../../job/error-record.ts'
import type { PostgresCore } from './core.ts'
import { LIST_PAUSES, PAUSE, RESUME } from './presence-statements.ts'

interface PauseRow {
  readonly type: string
  readonly who: string
  readonly reason: string
  readonly since_ms: number
}

export function createPauses(core: PostgresCore): Pauses {
  return {
    pause: (type, { who, reason }) =>
      core.call('pause', async (database) => {
        return (await database.rows(PAUSE, type, storable(who), storable(reason))).length > 0
      }),
    resume: (type) => core.call('resume', async (database) => (await database.rows(RESUME, type)).length > 0),
    list: () =>
      core.call('pauses', async (database) => {
        const rows = await database.rows<PauseRow>(LIST_PAUSES)
        return rows.map(({ type, who, reason, since_ms }) => ({ type, who, reason, sinceMs: since_ms }))
      }),
  }
}
