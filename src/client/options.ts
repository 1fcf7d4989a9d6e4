import type { JobFilter, Transaction } from '../engine/engine.ts'
import { OptionError } from '../errors.ts'
import type { AnyJob } from '../job/definition.ts'
import { type OptionNames, refuseUnknown } from '../job/known-options.ts'
import { ENQUEUE_NAMES, type EnqueueOptions } from '../job/options.ts'
import { JOB_STATES } from '../job/states.ts'
import type { MillOptions } from './mill.ts'

export const MILL_NAMES: OptionNames<MillOptions> = {
  jobs: true,
  clock: true,
  random: true,
  log: true,
  alerter: true,
  redact: true,
  payloadBytesMax: true,
  migrate: true,
}

type Within = { readonly within?: Transaction }

export const WITHIN_NAMES: OptionNames<Within> = { within: true }
export const ENQUEUE_WITHIN_NAMES: OptionNames<EnqueueOptions & Within> = { ...ENQUEUE_NAMES, ...WITHIN_NAMES }

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
const FILTER_NAMES: OptionNames<JobFilter> = { state: true, type: true, limit: true, before: true }

/** A negative limit would mean all to SQLite, and a page of everything would fill the memory of whoever asked. */
export function checkFilter(filter: JobFilter): JobFilter {
  refuseUnknown(filter, FILTER_NAMES, 'jobs')
  const { limit, state } = filter
  if (!Number.isInteger(limit) || limit < 1 || limit > LIST_LIMIT_MAX) {
    throw new OptionError(`'limit' is ${limit}; give a whole number from 1 to ${LIST_LIMIT_MAX}`)
  }
  if (state !== undefined && !JOB_STATES.includes(state)) {
    throw new OptionError(`'state' is '${state}'; give one of ${JOB_STATES.join(', ')}`)
  }
  return filter
}
