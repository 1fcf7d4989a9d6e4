import { OptionError } from '../../src/errors.ts'
import type { NamedSchedule } from '../../src/keeper/timetable.ts'
import { checkJobType, type JobType } from './job-types.ts'

export interface ScheduledJobOptions {
  /** Default: UTC. `tz` and `timezone` are the same; `tz` wins. */
  readonly tz?: string
  readonly timezone?: string
  readonly startDate?: Date
  readonly endDate?: Date
  /** The maximum number of runs. */
  readonly limit?: number
}

/** A schedule in the framework's form. The cron text has six fields, seconds first. */
export interface ScheduledJob {
  readonly name: string
  readonly cron: string
  readonly jobType: JobType
  readonly jobData: unknown
  readonly options?: ScheduledJobOptions
}

const NAMES = {
  tz: true,
  timezone: true,
  startDate: true,
  endDate: true,
  limit: true,
} satisfies Record<keyof ScheduledJobOptions, true>

/**
 * Converts it for a keeper or `mill.schedules.upsert`.
 *
 * @example
 * await mill.keep({ schedules: [toSchedule({ name: 'quotas', cron: '0 0 * * * *', jobType: 'quota-check', jobData: {} })] })
 */
export function toSchedule({ name, cron, jobType, jobData, options = {} }: ScheduledJob): NamedSchedule {
  const { tz, timezone, startDate, endDate, limit } = options
  const unknown = Object.keys(options).find((given) => !Object.hasOwn(NAMES, given))
  if (unknown !== undefined) {
    throw new OptionError(`'${unknown}' is not an option of a schedule; give one of ${Object.keys(NAMES).join(', ')}`)
  }
  return {
    name,
    cron,
    type: checkJobType(jobType),
    payload: jobData,
    ...(tz !== undefined && { tz }),
    ...(timezone !== undefined && { timezone }),
    ...(startDate !== undefined && { start: startDate }),
    ...(endDate !== undefined && { end: endDate }),
    ...(limit !== undefined && { limit }),
  }
}

const SESSION_MAX_AGE_MS = 86_400_000

/**
 * Five schedules that keep an assistant's memory in order. Define their types yourself.
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
