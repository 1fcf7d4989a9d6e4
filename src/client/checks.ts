import type { JobFilter } from '../engine/engine.ts'
import { OptionError } from '../errors.ts'
import type { AnyJob } from '../job/definition.ts'
import { JOB_STATES } from '../job/states.ts'

export function checkDefinitions(jobs: readonly AnyJob[]): void {
  for (const job of jobs) {
    if (jobs.some((other) => other.type === job.type && other !== job)) {
      throw new OptionError(`'jobs' has two definitions of '${job.type}'; keep one`)
    }
  }
}

export function criticalTypes(jobs: readonly AnyJob[]): string[] {
  return jobs.filter((job) => job.critical).map((job) => job.type)
}

const LIST_LIMIT_MAX = 10_000

/** A negative limit would mean all to SQLite, and a page of everything would fill the memory of whoever asked. */
export function checkFilter(filter: JobFilter): JobFilter {
  const { limit, state } = filter
  if (!Number.isInteger(limit) || limit < 1 || limit > LIST_LIMIT_MAX) {
    throw new OptionError(`'limit' is ${limit}; give a whole number from 1 to ${LIST_LIMIT_MAX}`)
  }
  if (state !== undefined && !JOB_STATES.includes(state)) {
    throw new OptionError(`'state' is '${state}'; give one of ${JOB_STATES.join(', ')}`)
  }
  return filter
}
