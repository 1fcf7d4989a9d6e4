import { OptionError } from '../../src/errors.ts'
import { ATTEMPTS_DEFAULT, TIMEOUT_DEFAULT_MS } from '../../src/job/options.ts'
import { isCriticalJobType } from '../dead-letters/processor.ts'
import { checkJobType, isJobType, type JobType } from './job-types.ts'
import { checkNames, type JobOptions, toBackoff, toEnqueueOptions } from './options.ts'
import { fromUrgency } from './urgency.ts'

export type JobDefaults = Required<Pick<JobOptions, 'priority' | 'attempts' | 'backoff' | 'timeout'>>

/** What the document says of every type; its waits start at a second, because it gives no figure (A52). */
const GLOBAL: JobDefaults = {
  priority: 0,
  attempts: ATTEMPTS_DEFAULT,
  backoff: { type: 'exponential', delay: 1_000 },
  timeout: TIMEOUT_DEFAULT_MS,
}

/** What a job of each type has unless its enqueue says otherwise, in the units of document A. */
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

/** What a definition may change of its type's defaults; the rest belongs to one job. */
export type TypeOptions = Omit<JobOptions, 'delay' | 'idempotencyKey'>

/** The options that a job of this type ends up with, field by field (A53). */
export function effectiveOptions(type: JobType, options: JobOptions = {}): JobDefaults & JobOptions {
  checkNames(options)
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
  return { ...JOB_DEFAULTS[checkJobType(type)], ...given }
}

/**
 * What `defineJob` needs to know of a listed type: its priority, attempts, backoff and timeout, and whether it is
 * critical.
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

/** A type that the document does not list has Millrace's own defaults where nothing else is said. */
export function specOfAny(type: string, options: TypeOptions = {}) {
  if (isJobType(type)) return specOf(type, options)
  checkTypeOptions(options)
  return { ...toEnqueueOptions(options), type }
}

/** A delay or a key in a definition would be left out without a word. */
function checkTypeOptions(options: JobOptions): void {
  for (const name of ['delay', 'idempotencyKey'] as const) {
    if (options[name] !== undefined)
      throw new OptionError(`'${name}' belongs to one job; give it when it is dispatched`)
  }
}
