import type { Events } from '../events.ts'
import type { Log } from '../job/definition.ts'
import { toIso } from '../time/iso.ts'
import { errorText } from './error-text.ts'

/** Lines about keepers and their schedules. Returns the detachers. */
export function logKeeper(events: Events, log: Log): readonly (() => void)[] {
  return [
    events.on('keeper.started', ({ keeper, duties }) => log.info('Keeper started', { keeper_id: keeper, duties })),
    events.on('keeper.leading', ({ keeper, term }) => log.info('Keeper is active', { keeper_id: keeper, term })),
    events.on('keeper.waiting', ({ keeper }) => log.info('Keeper is no longer active', { keeper_id: keeper })),
    events.on('keeper.stopped', ({ keeper, schedules }) => {
      // A137: each by name. They stay stored, and another keeper goes on with them.
      for (const schedule of schedules) log.info('Schedule no longer kept here', { keeper_id: keeper, schedule })
      log.info('Keeper stopped', { keeper_id: keeper })
    }),
    events.on('keeper.error', ({ keeper, during, error }) => {
      log.error('Keeper error', { keeper_id: keeper, during, error: errorText(error) })
    }),
    // A136
    events.on('schedule.registered', ({ name, type, cron, tz, nextAtMs }) =>
      log.info('Schedule registered', { schedule: name, cron, tz, job_type: type, next: isoOrNull(nextAtMs) }),
    ),
    events.on('schedule.fired', ({ name, type, tickMs, lateMs, jobId, status }) =>
      log.info('Schedule fired', {
        schedule: name,
        job_id: jobId,
        job_type: type,
        tick: toIso(tickMs),
        late_ms: lateMs,
        status,
      }),
    ),
    events.on('schedule.skipped', ({ name, type, tickMs, jobId }) =>
      log.warn('Schedule skipped: its last run has not ended', {
        schedule: name,
        job_id: jobId,
        job_type: type,
        tick: toIso(tickMs),
      }),
    ),
    events.on('schedule.missed', ({ name, type, count, isLeast, firstMs }) =>
      log.warn('Schedule missed ticks: no keeper ran then', {
        ...{ schedule: name, job_type: type, count },
        ...(isLeast && { at_least: true }),
        first: toIso(firstMs),
      }),
    ),
    events.on('schedule.changed', ({ name, change }) => log.info('Schedule changed', { schedule: name, change })),
  ]
}

function isoOrNull(ms: number | null): string | null {
  return ms === null ? null : toIso(ms)
}
