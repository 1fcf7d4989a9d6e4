import type { Abilities } from '../abilities.ts'
import { has } from '../abilities.ts'
import type { Dice } from '../dice.ts'
import type { Behaviour, Operation, PlannedJob } from '../operation.ts'

export interface Making {
  readonly abilities: Abilities
  readonly dice: Dice
  /** Whether a handler may end its process, or block it. */
  readonly mayCrash: boolean
  readonly mayBlock: boolean
  readonly hasTransactions: boolean
  /** A planned job with the next number: it returns at once unless `more` says otherwise. */
  job(type: string, behaviours?: readonly Behaviour[], more?: Omit<PlannedJob, 'n' | 'type' | 'behaviours'>): PlannedJob
  /** The next version of a latest key. */
  nextSeq(key: string): number
}

export interface Feature {
  /** How many times in 1,500 jobs. */
  readonly per: number
  /** It takes its time, so it comes in the first part of the program. */
  readonly isEarly?: true
  can?(making: Making): boolean
  make(making: Making): readonly Operation[]
}

export const one = (...jobs: readonly PlannedJob[]): Operation => ({ do: 'enqueue', how: 'one-by-one', jobs })
export const wait = (ms: number): Operation => ({ do: 'wait', ms })
export const returns = (afterMs: number): Behaviour => ({ do: 'return', afterMs })
export const throws: Behaviour = { do: 'throw', afterMs: 2, how: 'error' }
export const dies: Behaviour = { do: 'throw', afterMs: 1, how: 'non-retryable' }
export const delays = ({ abilities }: Making): boolean => abilities.capabilities.enqueueDelayMaxMs > 10_000
export const desk = ({ abilities }: Making): boolean => has(abilities, 'deadLetters')
export const waits = ({ abilities }: Making): boolean => abilities.capabilities.dependencies
export const removes = ({ abilities }: Making): boolean => has(abilities, 'retention')
export const records = ({ abilities }: Making): boolean => has(abilities, 'records')
