/** What the referee and a process of the crew tell each other. */
import type { Finished } from '../../proof/workload/finish.ts'
import type { EngineName, Role } from './scene.ts'

/** The exit code of a process that could not open its store. An exception that nothing caught ends a process with 1. */
export const STORE_AWAY = 75

/** In the environment of a process that is launched: the version of payloads that its handlers know. */
export const VERSION = 'MILLRACE_PROOF_VERSION'

/** What the program of a round is made from; the same for all its processes. */
export interface ProgramPart {
  readonly seed: number
  /** How many jobs all clients enqueue together, about. */
  readonly jobs: number
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
  /** Which client's operations it performs; null: none. */
  readonly client: number | null
  /** The first operation that was not begun yet. */
  readonly from: number
  /** For the client of the end: within what everything has to finish. Null for all others. */
  readonly finishMs: number | null
  /** Of the payloads that its handlers know. */
  readonly version: 1 | 2
  /** Workers differ in their options by it. */
  readonly index: number
}

export type Order =
  | { readonly order: 'play'; readonly part: Part }
  /** Blocks the event loop. */
  | { readonly order: 'block'; readonly ms: number }

export type Told =
  /** Its modules are loaded, and from now on it heeds signals. */
  | { readonly told: 'loaded' }
  /** It works, or performs its operations. */
  | { readonly told: 'ready' }
  /** It is about to perform this operation. */
  | { readonly told: 'at'; readonly operation: number }
  /** All its operations are performed. */
  | { readonly told: 'done' }
  | ({ readonly told: 'finished' } & Finished)
