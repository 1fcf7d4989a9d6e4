import type { Finding } from './diagnosis.ts'
import { failure, formatAge, ok, plural, warning } from './findings.ts'

export interface WaitingOutbox {
  readonly name: string
  readonly jobs: number
  /** How long the first of them has waited. */
  readonly oldestMs: number
}

/** Somebody who forwards looks several times a second, and tries again after seconds. */
const LATE_MS = 60_000
const STUCK_MS = 3_600_000

/** Nothing is said of outboxes that are empty: most stores have none. */
export function judgeOutboxes(waiting: readonly WaitingOutbox[]): readonly Finding[] {
  return waiting.map(({ name, jobs, oldestMs }) => {
    const text = `${plural(jobs, 'job')} in the outbox '${name}', the first for ${formatAge(oldestMs)}`
    if (oldestMs <= LATE_MS) return ok('outbox', text)
    return (oldestMs > STUCK_MS ? failure : warning)(
      'outbox',
      `${text}: nobody hands them on, or the target does not take them`,
      'Start a process that has the outbox open; if one runs, its onError says why the target refuses the first job.',
    )
  })
}
