import type { Backoff } from '../../src/job/backoff.ts'
import type { JobDefinition, RunningJob } from '../../src/job/definition.ts'
import type { StoredJob } from '../../src/job/job.ts'
import type { RemoveOption } from '../../src/job/keep.ts'
import { parseDurationMs } from '../../src/time/duration.ts'
import { JOB_DEFAULTS } from './defaults.ts'
import { isJobType } from './job-types.ts'
import type { BackoffOption } from './options.ts'
import { fromUrgency, toUrgency } from './urgency.ts'

/** The options that a job runs with, in the framework's names and units. */
export interface EffectiveOptions {
  /** An urgency from 0 to 15, higher first. Ten priorities hold sixteen urgencies, so it may be a neighbour of the one given. */
  readonly priority: number
  readonly attempts: number
  /** In milliseconds. */
  readonly timeout: number
  /** Left out for a list of delays, for which the framework has no form. */
  readonly backoff?: BackoffOption
  /** In milliseconds. Left out from the second start on: a store keeps only when a job runs next. */
  readonly delay?: number
  readonly removeOnComplete: RemoveOption
  readonly removeOnFail: RemoveOption
  readonly idempotencyKey?: string
}

type Defaults = Pick<JobDefinition, 'backoff' | 'timeoutMs' | 'keepCompleted' | 'keepDead'>

export function optionsOf(job: RunningJob, stored: StoredJob | null, defaults: Defaults): EffectiveOptions {
  const own = stored?.options ?? {}
  const backoff = toOption(own.backoff ?? defaults.backoff)
  const { keepCompleted = defaults.keepCompleted, keepDead = defaults.keepDead, timeoutMs = defaults.timeoutMs } = own
  return {
    priority: urgencyOf(job),
    attempts: job.attempts,
    timeout: timeoutMs,
    ...(backoff !== null && { backoff }),
    ...(stored !== null && job.attempt === 1 && { delay: Math.max(0, stored.runAtMs - stored.createdAtMs) }),
    removeOnComplete: toRemove(keepCompleted),
    removeOnFail: toRemove(keepDead),
    ...(job.key !== null && { idempotencyKey: job.key }),
  }
}

/** Of urgencies that share the job's priority, the default of its type. */
function urgencyOf({ name, priority }: RunningJob): number {
  const usual = isJobType(name) ? JOB_DEFAULTS[name].priority : null
  return usual !== null && fromUrgency(usual) === priority ? usual : toUrgency(priority)
}

function toOption(backoff: Backoff): BackoffOption | null {
  switch (backoff.kind) {
    case 'exponential':
      return { type: 'exponential', delay: parseDurationMs(backoff.base, 'backoff.base') }
    case 'fixed':
      return { type: 'fixed', delay: parseDurationMs(backoff.delay, 'backoff.delay') }
    case 'list':
      return null
    default:
      backoff satisfies never
      // Another version may have stored a kind that this one does not know.
      return null
  }
}

function toRemove(keep: number | null): RemoveOption {
  if (keep === null) return false
  return keep === 0 ? true : keep
}
