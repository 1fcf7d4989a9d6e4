import type { NamedSchedule } from './timetable.ts'

/** A day. */
const SESSION_MAX_AGE_MS = 86_400_000

/**
 * The five schedules of document A (A130 to A135): housekeeping of an assistant's memory. Their types are yours to define.
 *
 * @example
 * await mill.keep({ schedules: housekeepingSchedules })
 */
export const housekeepingSchedules: readonly NamedSchedule[] = Object.freeze([
  {
    name: 'session-cleanup',
    type: 'session-cleanup',
    cron: '0 */15 * * * *',
    payload: { maxAge: SESSION_MAX_AGE_MS },
  },
  {
    name: 'memory-importance-decay',
    type: 'memory-importance-decay',
    cron: '0 0 */6 * * *',
    payload: { decayFactor: 0.99 },
  },
  {
    name: 'index-optimization',
    type: 'index-optimization',
    cron: '0 0 3 * * *',
    tz: 'UTC',
    payload: { threshold: 0.8 },
  },
  {
    name: 'pattern-training-daily',
    type: 'pattern-training',
    cron: '0 0 4 * * *',
    tz: 'UTC',
    payload: { batchSize: 1_000, epochs: 5 },
  },
  { name: 'quota-check', type: 'quota-check', cron: '0 0 * * * *', payload: {} },
])
