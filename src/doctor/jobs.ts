/** Jobs that are stuck, late or impossible to run, judged the same way on every engine. */
import type { Finding } from '../engine/engine.ts'
import { toIso } from '../time/iso.ts'
import { failure, formatAge, ok, plural, warning } from './findings.ts'

/** A job that has been due for longer is overdue. */
export const OVERDUE_MS = 3_600_000
/** A running worker claims a due job within milliseconds, unless all its slots are taken. */
export const UNWORKED_MS: number = 5 * 60_000

export interface StuckJobs {
  readonly jobs: number
  /** Null when they may be of several types. */
  readonly type: string | null
  /** How long ago the oldest lease expired, or, where the store does not know that, how long ago the job started. */
  readonly oldestMs: number
  readonly since: 'expired' | 'started'
}

/** Pass only jobs whose lease expired longer ago than recovery takes. */
export function judgeStuck(stuck: readonly StuckJobs[], recoveryMaxMs: number): readonly Finding[] {
  if (stuck.length === 0) return [ok('stuck jobs', 'no lease expired longer ago than recovery takes')]
  return stuck.map(({ jobs, type, oldestMs, since }) => {
    const oldest = `${since === 'expired' ? 'the oldest lease expired' : 'the oldest started'} ${formatAge(oldestMs)} ago`
    return failure(
      'stuck jobs',
      `${plural(jobs, 'job')}${ofType(type)} in progress without a valid lease, and nothing recovers them; ${oldest}`,
      `Start a worker or 'millrace keep', which recover them within ${formatAge(recoveryMaxMs)}, or run 'millrace reap' once.`,
    )
  })
}

/** No expiry ever finds them: only another program writes such rows. */
export function judgeLeaseless(jobs: number): readonly Finding[] {
  if (jobs === 0) return []
  return [
    failure(
      'stuck jobs',
      `${plural(jobs, 'job')} in progress without any lease: another program wrote the state, and no recovery finds them`,
      `List them with 'millrace jobs --status in_progress'. Set their status back to 'queued', or end them with 'millrace cancel'.`,
    ),
  ]
}

export interface OverdueJobs {
  readonly type: string
  readonly jobs: number
  /** Whether `jobs` counts the overdue ones or, where that is too expensive, all that wait. */
  readonly counted: 'overdue' | 'waiting'
  /** How long the oldest has been due; null where the store only knows that it is longer than OVERDUE_MS. */
  readonly oldestMs: number | null
  /** Jobs of the type in progress; null where that is not known. */
  readonly running: number | null
}

export function judgeOverdue(overdue: readonly OverdueJobs[]): readonly Finding[] {
  if (overdue.length === 0) return [ok('overdue jobs', `no job has been due for more than ${formatAge(OVERDUE_MS)}`)]
  return overdue.map(({ type, jobs, counted, oldestMs, running }) =>
    warning(
      'overdue jobs',
      `${plural(jobs, 'job')}${ofType(type)} ${counted}, the oldest due for ${oldestMs === null ? `more than ${formatAge(OVERDUE_MS)}` : formatAge(oldestMs)}${running === 0 ? ', and none is running' : ''}`,
      running === 0
        ? `Start a worker of '${type}'.`
        : `Give '${type}' more workers or more concurrency. If jobs of higher priority, a rate limit or retries hold it back, change those.`,
    ),
  )
}

export interface UnworkedType {
  readonly type: string
  /** Due for longer than UNWORKED_MS. */
  readonly jobs: number
  /** The last start, failure or release of the type on record. */
  readonly lastSignMs: number | null
}

/** Workers do not register, so this is read from what they did; the wording must not claim more. */
export function judgeWorkers(unworked: readonly UnworkedType[]): readonly Finding[] {
  if (unworked.length === 0) {
    return [ok('workers', `every type with jobs due for ${formatAge(UNWORKED_MS)} was worked on in that time`)]
  }
  return unworked.map(({ type, jobs, lastSignMs }) => {
    const last =
      lastSignMs === null
        ? 'no start of this type is on record'
        : `the last sign of a worker is from ${toIso(lastSignMs)}`
    return warning(
      'workers',
      `'${type}' has ${plural(jobs, 'job')} due for more than ${formatAge(UNWORKED_MS)} and none is running: ${last}`,
      `Start a worker whose modules export '${type}' (or name it in --types). If one runs, its rate limit holds it back or its slots are taken by other types.`,
    )
  })
}

export interface UnclaimableJobs {
  /** A job by its id, or how many jobs. */
  readonly jobs: string | number
  /** What keeps every claim from finding them. */
  readonly why: string
  readonly advice: string
}

/** The unclaimable jobs that are named one by one; the rest is counted. */
const NAMED_MAX = 20

/** Queued rows that another program wrote and that no claim finds. Nothing else tells of a job that never starts. */
export function judgeUnclaimable(unclaimable: readonly UnclaimableJobs[]): readonly Finding[] {
  if (unclaimable.length === 0) return [ok('unclaimable jobs', 'every queued job that was checked can be claimed')]
  const findings = unclaimable.slice(0, NAMED_MAX).map(({ jobs, why, advice }) => {
    const never =
      typeof jobs === 'string' ? `job ${jobs} never runs` : `${plural(jobs, 'queued job')} cannot be claimed`
    return failure('unclaimable jobs', `${never}: ${why}`, `Another program wrote that. ${advice}`)
  })
  const rest = unclaimable.length - findings.length
  if (rest === 0) return findings
  const fix = 'Fix the program that writes them first.'
  return [...findings, failure('unclaimable jobs', `${plural(rest, 'more job')} that never run`, fix)]
}

export interface InconsistentJobs {
  readonly jobs: number
  readonly type?: string
  /** As it reads after «3 jobs …». */
  readonly what: string
  readonly advice: string
}

export function judgeConsistency(found: readonly InconsistentJobs[]): readonly Finding[] {
  return found
    .filter(({ jobs }) => jobs > 0)
    .map(({ jobs, type = null, what, advice }) =>
      warning('consistency', `${plural(jobs, 'job')}${ofType(type)} ${what}`, advice),
    )
}

function ofType(type: string | null): string {
  return type === null ? '' : ` of type '${type}'`
}
