/** Work that runs beside the jobs: schedules and outboxes. */

import type { Finding } from '../engine/engine.ts'
import type { StoredRecord } from '../engine/records.ts'
import { toSchedule } from '../engine/schedules.ts'
import { failure, formatAge, ok, plural, warning } from './findings.ts'

/** A running keeper would have run the tick by then. */
const SCHEDULE_LATE_MS = 60_000

export function judgeSchedules(records: readonly StoredRecord[], nowMs: number): Finding {
  const active = records
    .map(toSchedule)
    .flatMap(({ name, nextAtMs }) => (nextAtMs === null ? [] : [{ name, lateMs: nowMs - nextAtMs }]))
  const late = active.filter(({ lateMs }) => lateMs > SCHEDULE_LATE_MS)
  const [latest] = late.toSorted((left, right) => right.lateMs - left.lateMs)
  if (latest === undefined)
    return ok(
      'schedules',
      `${active.length} of ${plural(records.length, 'schedule')} will run again, and none is overdue`,
    )
  return failure(
    'schedules',
    `${plural(late.length, 'schedule')} overdue, '${latest.name}' by ${formatAge(latest.lateMs)}: no keeper runs what is due`,
    `Start a worker or 'millrace keep'. If one runs, its log says why it cannot. 'millrace schedules' marks the late ones.`,
  )
}

export interface WaitingOutbox {
  readonly name: string
  readonly jobs: number
  /** How long the first of them has waited. */
  readonly oldestMs: number
}

/** A forwarder looks several times a second, and tries again after seconds. */
const OUTBOX_LATE_MS = 60_000
const OUTBOX_STUCK_MS = 3_600_000

/** Empty outboxes are not mentioned: most stores have none. */
export function judgeOutboxes(waiting: readonly WaitingOutbox[]): readonly Finding[] {
  return waiting.map(({ name, jobs, oldestMs }) => {
    const text = `${plural(jobs, 'job')} in the outbox '${name}', the first for ${formatAge(oldestMs)}`
    if (oldestMs <= OUTBOX_LATE_MS) return ok('outbox', text)
    return (oldestMs > OUTBOX_STUCK_MS ? failure : warning)(
      'outbox',
      `${text}: no process forwards them, or the target refuses them`,
      'Start a process that has the outbox open. If one runs, its onError says why the target refuses the first job.',
    )
  })
}
