import type { Finding } from '../../../engine/diagnosis.ts'
import { failure, formatAge, ok, plural } from '../../../engine/findings.ts'
import type { RedisDatabase } from '../database.ts'
import { listSchedules } from '../schedules.ts'

/** Every keeper would have run a tick by then. */
const SCHEDULE_MS = 60_000

export async function lookAtSchedules(database: RedisDatabase): Promise<readonly Finding[]> {
  const schedules = await listSchedules(database)
  const nowMs = database.now === '' ? await database.serverNowMs() : Number(database.now)
  const active = schedules.flatMap(({ name, nextAtMs }) => (nextAtMs === null ? [] : [{ name, nextAtMs }]))
  const overdue = active.filter(({ nextAtMs }) => nextAtMs < nowMs - SCHEDULE_MS)
  const [oldest] = overdue.toSorted((left, right) => left.nextAtMs - right.nextAtMs)
  if (oldest === undefined) {
    return [
      ok(
        'schedules',
        `${active.length} of ${plural(schedules.length, 'schedule')} will run again, and none is overdue`,
      ),
    ]
  }
  return [
    failure(
      'schedules',
      `${plural(overdue.length, 'schedule')} overdue, '${oldest.name}' for ${formatAge(nowMs - oldest.nextAtMs)}: nobody runs what is due`,
      `Start a worker or 'millrace keep'; if one runs, its log says why it cannot. 'millrace schedules' marks them.`,
    ),
  ]
}
