import { MillraceError } from '../errors.ts'

/** The five states of a job; `failed` is only passed through, inside one transaction, and stands in the event log. */
export const JOB_STATES = ['queued', 'in_progress', 'completed', 'failed', 'dead_letter'] as const
export type JobState = (typeof JOB_STATES)[number]

/** The state as an operator names it: a job that was ended is no dead letter to look at. */
export function stateOf({ state, ended }: { readonly state: JobState; readonly ended: string | null }): string {
  return ended ?? state
}

/**
 * Who causes a transition: engines and the core act automatically, a producer supersedes by enqueuing a newer job of
 * the same latest key, an operator is a named person at the desk, the CLI or the API.
 */
export type Mover = 'core' | 'producer' | 'operator'

const AUTOMATIC: Readonly<Record<JobState, readonly JobState[]>> = {
  queued: ['in_progress'],
  in_progress: ['completed', 'failed', 'queued'],
  failed: ['queued', 'dead_letter'],
  completed: [],
  dead_letter: [],
}

type Moves = Readonly<Partial<Record<JobState, readonly JobState[]>>>

/** A job that a person or a newer job ended is kept as a dead letter whose `ended` says why. */
const ADDED: Readonly<Record<Mover, Moves>> = {
  core: {},
  producer: { queued: ['dead_letter'] },
  operator: { queued: ['dead_letter'], in_progress: ['dead_letter'], dead_letter: ['queued'] },
}

export function canMove(from: JobState, to: JobState, by: Mover = 'core'): boolean {
  return AUTOMATIC[from].includes(to) || (ADDED[by][from]?.includes(to) ?? false)
}

export function assertMove(from: JobState, to: JobState, by: Mover = 'core'): void {
  if (canMove(from, to, by)) return
  throw new MillraceError(
    'ERR_STATE_TRANSITION',
    `a job cannot go from ${from} to ${to} (by ${by}); see docs/state-machine.md`,
  )
}
