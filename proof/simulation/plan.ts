/** Everything that decides a simulation, as data: the same plan gives the same history, and a shorter one is valid too. */
import type { Operation } from '../workload/operation.ts'
import type { CallFault, Choice } from './scheduler.ts'

/** `at`: after so many steps of the scheduler. `process`: which one of those that live then. */
export type PlannedFault =
  /** A process is killed: its calls and answers are lost. Another one starts `backMs` later. */
  | { readonly do: 'kill'; readonly at: number; readonly process: number; readonly backMs: number }
  /** Its answers and timers wait; it may outlive its leases. */
  | { readonly do: 'pause'; readonly at: number; readonly process: number; readonly forMs: number }
  /** A worker is stopped as by SIGTERM, and another one starts `backMs` later. */
  | { readonly do: 'stop'; readonly at: number; readonly process: number; readonly backMs: number }
  | { readonly do: 'clock'; readonly at: number; readonly byMs: number }
  /** The nth call of this name over all processes. */
  | { readonly do: 'call'; readonly call: FaultyCall; readonly nth: number; readonly when: CallFault }

/** Calls whose failure means unknown. The answer of a claim is never lost alone: its engine would take the leases back. */
export const FAULTY_CALLS = [
  'enqueue',
  'claim',
  'settle',
  'renew',
  'report',
  'save',
  'cancel',
  'requeue',
  'discard',
] as const
export type FaultyCall = (typeof FAULTY_CALLS)[number]

export interface Plan {
  readonly seed: number
  readonly workers: number
  /** One list for each client. */
  readonly clients: readonly (readonly Operation[])[]
  readonly faults: readonly PlannedFault[]
  /** What the scheduler chooses, one after another; then always the oldest. Null: by the seed, while there is trouble. */
  readonly choices: readonly Choice[] | null
}
