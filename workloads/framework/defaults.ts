import { OptionError } from '../../src/errors.ts'
import { ATTEMPTS_DEFAULT, TIMEOUT_DEFAULT_MS } from '../../src/job/options.ts'
import { checkJobType, isCriticalJobType, isJobType, type JobType } from './job-types.ts'
import { checkNames, type JobOptions, toBackoff, toEnqueueOptions } from './options.ts'
import { fromUrgency } from './urgency.ts'

export type JobDefaults = Required<Pick<JobOptions, 'priority' | 'attempts' | 'backoff' | 'timeout'>>

const GLOBAL: JobDefaults = {
  priority: 0,
  attempts: ATTEMPTS_DEFAULT,
  backoff: { type: 'exponential', delay: 1_000 },
  timeout: TIMEOUT_DEFAULT_MS,
}

/** The defaults of each type, in the framework's units. */
export const JOB_DEFAULTS: Readonly<Record<JobType, JobDefaults>> = Object.freeze({
  'memory-consolidation': {
    priority: 5,
    attempts: 3,
    backoff: { type: 'exponential', delay: 5_000 },
    timeout: 300_000,
  },
  'memory-cleanup': GLOBAL,
  'memory-importance-decay': GLOBAL,
  'embedding-batch': { priority: 10, attempts: 5, backoff: { type: 'exponential', delay: 2_000 }, timeout: 60_000 },
  'embedding-reindex': GLOBAL,
  'trajectory-process': GLOBAL,
  'pattern-training': { priority: 1, attempts: 2, backoff: { type: 'fixed', delay: 60_000 }, timeout: 3_600_000 },
  'ewc-consolidation': GLOBAL,
  'session-cleanup': { priority: 3, attempts: 3, backoff: { type: 'exponential', delay: 10_000 }, timeout: 120_000 },
  'session-archive': GLOBAL,
  'index-optimization': GLOBAL,
  'index-rebalance': GLOBAL,
  'webhook-dispatch': { priority: 15, attempts: 10, backoff: { type: 'exponential', delay: 1_000 }, timeout: 30_000 },
  'slack-sync': GLOBAL,
  'quota-check': GLOBAL,
  'audit-export': GLOBAL,
  'data-export': GLOBAL,
  'data-deletion': GLOBAL,
})

/** The options that a definition may change; the others belong to one job. */
export type TypeOptions = Omit<JobOptions, 'delay' | 'idempotencyKey'>

/** The options of a job of this type, with its defaults. */
export function effectiveOptions(type: JobType, options: JobOptions = {}): JobDefaults & JobOptions {
  checkNames(options)
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
  return { ...JOB_DEFAULTS[checkJobType(type)], ...given }
}

/**
 * The options of a listed type for `defineJob`.
 *
 * @example
 * export const checkQuotas = defineJob({ ...specOf('quota-check'), run: ({ signal }) => quotas.check(signal) })
 */
export function specOf<Type extends JobType>(type: Type, options: TypeOptions = {}) {
  checkTypeOptions(options)
  const { priority, attempts, backoff, timeout, removeOnComplete, removeOnFail } = effectiveOptions(type, options)
  return {
    type,
    priority: fromUrgency(priority),
    attempts,
    backoff: toBackoff(backoff),
    timeout,
    critical: isCriticalJobType(type),
    ...(removeOnComplete !== undefined && { removeOnComplete }),
    ...(removeOnFail !== undefined && { removeOnFail }),
  }
}

/** An unlisted type has Millrace's defaults. */
export function specOfAny(type: string, options: TypeOptions = {}) {
  if (isJobType(type)) return specOf(type, options)
  checkTypeOptions(options)
  return { ...toEnqueueOptions(options), type }
}

/** A delay or key in a definition would silently have no effect. */
function checkTypeOptions(options: JobOptions): void {
  for (const name of ['delay', 'idempotencyKey'] as const) {
    if (options[name] !== undefined)
      throw new OptionError(`'${name}' belongs to one job; give it when it is dispatched`)
  }
}
