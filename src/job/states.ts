import { MillraceError } from '../errors.ts'

/** The five states of a job; `failed` is only passed through, inside one transaction, and stands in the event log. */
export const JOB_STATES = ['queued', 'in_progress', 'completed', 'failed', 'dead_letter'] as const
export type JobState = (typeof JOB_STATES)[number]

/** Who causes a transition: engines and the core act automatically, the desk acts for a named person. */
export type Actor = 'core' | 'operator'

const AUTOMATIC: Readonly<Record<JobState, readonly JobState[]>> = {
  queued: ['in_progress'],
  in_progress: ['completed', 'failed', 'queued'],
  failed: ['queued', 'dead_letter'],
  completed: [],
  dead_letter: [],
}

/** An operator may also replay a dead letter, and may end a job that has not finished. */
const BY_OPERATOR: Readonly<Record<JobState, readonly JobState[]>> = {
  queued: ['dead_letter'],
  in_progress: ['dead_letter'],
  failed: [],
  completed: [],
  dead_letter: ['queued'],
}

export function canMove(from: JobState, to: JobState, by: Actor = 'core'): boolean {
  return AUTOMATIC[from].includes(to) || (by === 'operator' && BY_OPERATOR[from].includes(to))
}

export function assertMove(from: JobState, to: JobState, by: Actor = 'core'): void {
  if (canMove(from, to, by)) return
  throw new MillraceError(
    'ERR_STATE_TRANSITION',
    `a job cannot go from ${from} to ${to} (by ${by}); see docs/state-machine.md`,
  )
}
