/** What the referee and a process of the crew tell each other. */
import type { FinalStore } from '../../proof/check/final-store.ts'
import type { Finished } from '../../proof/workload/finish.ts'
import type { EngineName, Role } from './scene.ts'

/** In the environment of a process that is launched: the version of payloads that its handlers know. */
export const VERSION = 'MILLRACE_PROOF_VERSION'

/** What the program of a round is made from; the same for all its processes. */
export interface ProgramPart {
  readonly seed: number
  /** How many jobs all clients enqueue together, about. */
  readonly jobs: number
  /** How many of them other programs write. */
  readonly foreignJobs: number
  readonly clients: number
  /** Over how long each client spreads its operations. */
  readonly spanMs: number
}

/** What a process has to do in a round. */
export interface Part {
  /** Its name in the history. */
  readonly name: string
  readonly role: Role
  readonly engine: EngineName
  readonly url: string
  /** Where its history goes. */
  readonly history: string
  readonly program: ProgramPart
  /** It has the jobs in its memory, so it has all roles. */
  readonly isAlone: boolean
  /** Which client's operations it performs; null: none. */
  readonly client: number | null
  /** By client, the first operation that nobody has begun yet. */
  readonly from: readonly number[]
  /** Of the payloads that its handlers know. */
  readonly version: 1 | 2
  /** Workers differ in their options by it. */
  readonly index: number
}

export type Order =
  | { readonly order: 'play'; readonly part: Part }
  /** Blocks the event loop. */
  | { readonly order: 'block'; readonly ms: number }
  /** Ends what waits for an operator, and waits until no job is left. */
  | { readonly order: 'finish'; readonly boundMs: number }
  /** Reads what the store has about these jobs. */
  | { readonly order: 'final'; readonly ids: readonly string[] }

export type Told =
  /** Its modules are loaded, and from now on it heeds signals. */
  | { readonly told: 'loaded' }
  /** It works, or performs its operations. */
  | { readonly told: 'ready' }
  /** It is about to perform this operation. */
  | { readonly told: 'at'; readonly client: number; readonly operation: number }
  /** All operations of this client are performed. */
  | { readonly told: 'done'; readonly client: number }
  | ({ readonly told: 'finished' } & Finished)
  | { readonly told: 'final'; readonly final: FinalStore }
