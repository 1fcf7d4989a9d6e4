import { type OptionNames, refuseUnknown } from '../../src/job/known-options.ts'
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

const NAMES: OptionNames<ScheduledJob> = { name: true, cron: true, jobType: true, jobData: true, options: true }
const BOUND_NAMES: OptionNames<ScheduledJobOptions> = {
  ...{ tz: true, timezone: true, startDate: true, endDate: true, limit: true },
}

/**
 * Converts it for a keeper or `mill.schedules.upsert`.
 *
 * @example
 * await mill.keep({ schedules: [toSchedule({ name: 'quotas', cron: '0 0 * * * *', jobType: 'quota-check', jobData: {} })] })
 */
export function toSchedule(job: ScheduledJob): NamedSchedule {
  refuseUnknown(job, NAMES, 'a schedule')
  const { name, cron, jobType, jobData, options = {} } = job
  refuseUnknown(options, BOUND_NAMES, `the schedule '${name}'`)
  const { tz, timezone, startDate, endDate, limit } = options
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
 * Five schedules that keep an assistant's memory in order, in the framework's form. Define their types yourself.
 *
 * @example
 * await new WorkerScheduler(mill, { schedules: SCHEDULED_JOBS }).start()
 */
export const SCHEDULED_JOBS: readonly ScheduledJob[] = Object.freeze([
  {
    name: 'session-cleanup',
    jobType: 'session-cleanup',
    cron: '0 */15 * * * *',
    jobData: { maxAge: SESSION_MAX_AGE_MS },
  },
  {
    name: 'memory-importance-decay',
    jobType: 'memory-importance-decay',
    cron: '0 0 */6 * * *',
    jobData: { decayFactor: 0.99 },
  },
  {
    name: 'index-optimization',
    jobType: 'index-optimization',
    cron: '0 0 3 * * *',
    jobData: { threshold: 0.8 },
    options: { timezone: 'UTC' },
  },
  {
    name: 'pattern-training-daily',
    jobType: 'pattern-training',
    cron: '0 0 4 * * *',
    jobData: { batchSize: 1_000, epochs: 5 },
    options: { timezone: 'UTC' },
  },
  { name: 'quota-check', jobType: 'quota-check', cron: '0 0 * * * *', jobData: {} },
])

/**
 * The same for a keeper.
 *
 * @example
 * await mill.keep({ schedules: housekeepingSchedules })
 */
export const housekeepingSchedules: readonly NamedSchedule[] = Object.freeze(SCHEDULED_JOBS.map(toSchedule))
