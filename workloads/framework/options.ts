import { OptionError } from '../../src/errors.ts'
import { BACKOFF_MAX_DEFAULT_MS, type Backoff } from '../../src/job/backoff.ts'
import type { Tenant } from '../../src/job/job.ts'
import type { RemoveOption } from '../../src/job/keep.ts'
import type { EnqueueOptions } from '../../src/job/options.ts'
import type { JobType } from './job-types.ts'
import { fromUrgency } from './urgency.ts'

/** The wait between attempts. An exponential one doubles, up to an hour. */
export interface BackoffOption {
  readonly type: 'exponential' | 'fixed'
  /** In milliseconds. */
  readonly delay: number
}

/** The options of one job, in the framework's names and units. */
export interface JobOptions {
  /** An urgency from 0 to 15, higher first; `fromUrgency` converts it to a priority. */
  readonly priority?: number
  /** In milliseconds. */
  readonly delay?: number
  /** Starts in total, including the first. */
  readonly attempts?: number
  readonly backoff?: BackoffOption
  /** Of one start, in milliseconds. */
  readonly timeout?: number
  readonly removeOnComplete?: RemoveOption
  readonly removeOnFail?: RemoveOption
  /** At most one live job has it; a second enqueue returns the first job's id. */
  readonly idempotencyKey?: string
}

/** A job in the framework's form. */
export interface JobConfig<Data = unknown> {
  readonly type: JobType
  readonly data: Data
  readonly options?: JobOptions
  readonly tenant?: Tenant
}

/** At most `max` starts in any `duration` milliseconds, over all workers of the type. */
export interface Limiter {
  readonly max: number
  readonly duration: number
}

const NAMES = {
  priority: true,
  delay: true,
  attempts: true,
  backoff: true,
  timeout: true,
  removeOnComplete: true,
  removeOnFail: true,
  idempotencyKey: true,
} satisfies Record<keyof JobOptions, true>

/** Options that belong to something else. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  limiter: 'a worker, in its WorkerConfig',
  concurrency: 'a worker, in its WorkerConfig',
  tz: `a schedule, in its 'options'`,
  timezone: `a schedule, in its 'options'`,
  tenant: 'the job, beside its options',
}

/** An unknown name would silently have no effect. */
export function checkNames(options: JobOptions): void {
  for (const name of Object.keys(options)) {
    if (Object.hasOwn(NAMES, name)) continue
    const place = Object.hasOwn(ELSEWHERE, name) ? `it belongs to ${ELSEWHERE[name]}` : ''
    throw new OptionError(
      `'${name}' is not an option of a job; ${place || `give one of ${Object.keys(NAMES).join(', ')}`}`,
    )
  }
}

/** For `mill.enqueue`, which checks the values that need no conversion. */
export function toEnqueueOptions(options: JobOptions): EnqueueOptions {
  checkNames(options)
  const { priority, backoff, delay, attempts, timeout, removeOnComplete, removeOnFail, idempotencyKey } = options
  return {
    ...(priority !== undefined && { priority: fromUrgency(priority) }),
    ...(backoff !== undefined && { backoff: toBackoff(backoff) }),
    ...(delay !== undefined && { delay }),
    ...(attempts !== undefined && { attempts }),
    ...(timeout !== undefined && { timeout }),
    ...(removeOnComplete !== undefined && { removeOnComplete }),
    ...(removeOnFail !== undefined && { removeOnFail }),
    ...(idempotencyKey !== undefined && { key: idempotencyKey }),
  }
}

export function toBackoff(option: BackoffOption): Backoff {
  const { type: kind, delay } = checkBackoffOption(option)
  switch (kind) {
    case 'exponential':
      return { kind, base: delay, max: BACKOFF_MAX_DEFAULT_MS }
    case 'fixed':
      return { kind, delay }
    default:
      kind satisfies never
      throw new OptionError(`'backoff.type' is '${kind}'; give 'exponential' or 'fixed'`)
  }
}

function checkBackoffOption(option: BackoffOption | null): BackoffOption {
  if (typeof option !== 'object' || option === null) {
    throw new OptionError(`'backoff' is not an object; give { type: 'exponential' or 'fixed', delay: milliseconds }`)
  }
  const { delay } = option
  if (Number.isInteger(delay) && delay >= 0 && delay <= BACKOFF_MAX_DEFAULT_MS) return option
  throw new OptionError(`'backoff.delay' is ${delay}; give whole milliseconds from 0 to ${BACKOFF_MAX_DEFAULT_MS}`)
}

export function toLimit(limiter: Limiter): { readonly max: number; readonly per: number } {
  const { max, duration } = limiter
  if (Number.isInteger(max) && max >= 1 && Number.isInteger(duration) && duration >= 1) return { max, per: duration }
  throw new OptionError(
    `'limiter' needs a whole 'max' from 1 and a 'duration' in milliseconds from 1, such as { max: 10, duration: 1000 }`,
  )
}
