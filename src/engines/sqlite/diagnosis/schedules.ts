/** Schedules that were due, and that nobody has run. */
import type { Finding } from '../../../engine/diagnosis.ts'
import { failure, formatAge, ok, plural } from '../../../engine/findings.ts'
import type { Connection } from '../database.ts'

/** Every keeper would have run a tick by then. */
const TOLERANCE_MS = 60_000

const COUNT_DUE = `SELECT count(*) AS schedules, count(next_at_ms) AS active FROM millrace_schedules`
const FIND_OVERDUE = `
SELECT name, next_at_ms AS at FROM millrace_schedules WHERE next_at_ms < :before ORDER BY next_at_ms LIMIT 100`

export function lookAtSchedules({ handle }: Connection, nowMs: number): Finding {
  const overdue = handle.prepare(FIND_OVERDUE).all({ before: nowMs - TOLERANCE_MS }) as { name: string; at: number }[]
  const [oldest] = overdue
  if (oldest === undefined) {
    const { schedules, active } = handle.prepare(COUNT_DUE).get() as { schedules: number; active: number }
    return ok('schedules', `${active} of ${plural(schedules, 'schedule')} will run again, and none is overdue`)
  }
  return failure(
    'schedules',
    `${plural(overdue.length, 'schedule')} overdue, '${oldest.name}' for ${formatAge(nowMs - oldest.at)}: nobody runs what is due`,
    `Start a worker or 'millrace keep'; if one runs, its log says why it cannot. 'millrace schedules' marks them.`,
  )
}
