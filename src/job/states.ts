import { MillraceError } from '../errors.ts'

/** The states that engines store. A job only passes through `failed`, within one transaction; its history shows it. */
export const STORED_STATES = ['queued', 'in_progress', 'completed', 'failed', 'dead_letter'] as const
export type StoredState = (typeof STORED_STATES)[number]

/** Why a job that neither completed nor died will not run. Stored beside `dead_letter`. */
export const ENDS = ['cancelled', 'superseded', 'discarded'] as const
export type Ended = (typeof ENDS)[number]

/** The states that users see. */
export const JOB_STATES = [...STORED_STATES, ...ENDS] as const
export type JobState = StoredState | Ended

/** Every engine maps its rows with this function, so that a job is shown the same on each. */
export function shownState(stored: StoredState, ended: Ended | null): JobState {
  return stored === 'dead_letter' ? (ended ?? stored) : stored
}

/** What a store looks for to find the jobs in a shown state: the opposite of `shownState`. */
export function storedAs(state: JobState): { readonly stored: StoredState; readonly ended: Ended | null } {
  return isEnded(state) ? { stored: 'dead_letter', ended: state } : { stored: state, ended: null }
}

/** Cancelled, superseded or discarded. */
export function isEnded(state: JobState): state is Ended {
  return ENDS.some((ended) => ended === state)
}

/** The job will not run again unless an operator acts. */
export function isFinished(state: JobState): boolean {
  return state === 'completed' || state === 'dead_letter' || isEnded(state)
}

/**
 * Who causes a transition: engines and the core act automatically, a producer supersedes by enqueuing a newer job of
 * the same latest key, an operator is a named person at the desk, the CLI or the API.
 */
export type Mover = 'core' | 'producer' | 'operator'

const AUTOMATIC: Readonly<Record<StoredState, readonly StoredState[]>> = {
  queued: ['in_progress'],
  in_progress: ['completed', 'failed', 'queued'],
  failed: ['queued', 'dead_letter'],
  completed: [],
  dead_letter: [],
}

type Moves = Readonly<Partial<Record<StoredState, readonly StoredState[]>>>

/** A job that a person or a newer job ended is stored as `dead_letter`, and its `ended` says why. */
const ADDED: Readonly<Record<Mover, Moves>> = {
  core: {},
  producer: { queued: ['dead_letter'] },
  operator: { queued: ['dead_letter'], in_progress: ['dead_letter'], dead_letter: ['queued'] },
}

export function canMove(from: StoredState, to: StoredState, by: Mover = 'core'): boolean {
  return AUTOMATIC[from].includes(to) || (ADDED[by][from]?.includes(to) ?? false)
}

export function assertMove(from: StoredState, to: StoredState, by: Mover = 'core'): void {
  if (canMove(from, to, by)) return
  throw new MillraceError(
    'ERR_STATE_TRANSITION',
    `a job cannot go from ${from} to ${to} (by ${by}); see docs/state-machine.md`,
  )
}
