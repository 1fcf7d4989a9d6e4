/** What a client of the workload works with and remembers. */
import type { Mill } from '../../src/client/mill.ts'
import { type Desk, openDesk } from '../../src/desk/desk.ts'
import type { Receipt } from '../../src/engine/engine.ts'
import { type ErrorCode, fieldOf, isMillraceError, messageOf } from '../../src/errors.ts'
import type { Clock } from '../../src/time/clock.ts'
import type { Recorder } from '../history/recorder.ts'
import { type Abilities, has } from './abilities.ts'
import { definitionsFor, type PlanDefinition, type Version } from './definitions.ts'
import type { BeginTransaction, TransactionNames } from './own-transactions.ts'

export interface ClientParts {
  readonly mill: Mill
  readonly abilities: Abilities
  /** The client acts at the desk under its name. */
  readonly recorder: Recorder
  readonly clock: Clock
  /** Ends the client before its next operation, and what it waits for. */
  readonly signal: AbortSignal
  /** `names` is what the engine was recorded with. Without it, operations with a transaction are left out. */
  readonly transactions?: { readonly begin: BeginTransaction; readonly names: TransactionNames }
}

/** Errors that a fault, another client or a worker may cause. Any other is a violation. */
const PASSING: readonly ErrorCode[] = [
  'ERR_STORAGE_OPEN',
  'ERR_STORAGE_BUSY',
  'ERR_STORAGE_FAILED',
  'ERR_STORAGE_FULL',
  'ERR_STORAGE_READONLY',
  'ERR_STORAGE_REPLACED',
  'ERR_STORAGE_NOT_A_DATABASE',
  'ERR_SCHEMA_MISSING',
  'ERR_SCHEMA_NEWER',
  'ERR_WAIT_TIMEOUT',
  'ERR_CLOSED',
]

export class Client {
  readonly mill: Mill
  readonly desk: Desk | null
  readonly abilities: Abilities
  readonly recorder: Recorder
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly transactions: ClientParts['transactions']
  /** By the number of the planned job. */
  readonly receipts = new Map<number, Receipt>()
  /** What this client has discarded and not undone. */
  readonly discarded: string[] = []
  readonly #definitions: Readonly<Record<Version, ReadonlyMap<string, PlanDefinition>>>

  #transactions = 0

  constructor(parts: ClientParts) {
    const { mill, abilities, clock } = parts
    this.#definitions = { 1: definitionsFor(abilities, 1), 2: definitionsFor(abilities, 2) }
    this.mill = mill
    this.abilities = abilities
    this.recorder = parts.recorder
    this.clock = clock
    this.signal = parts.signal
    this.transactions = parts.transactions
    const jobs = [...this.#definitions[2].values()]
    this.desk = has(abilities, 'deadLetters') ? openDesk(mill, { jobs, clock }) : null
  }

  definition(type: string, version: Version = 1): PlanDefinition {
    const found = this.#definitions[version].get(type)
    if (found === undefined) throw new Error(`the workload has no type '${type}'`)
    return found
  }

  /** Its name in the history. */
  nextTransaction(): string {
    this.#transactions += 1
    return `${this.recorder.by}-${this.#transactions}`
  }

  by(reason: string): { readonly who: string; readonly reason: string } {
    return { who: this.recorder.by, reason }
  }

  seen(rule: string, job: string | null, isPromised: boolean, sentence: string): void {
    this.recorder.note({ what: 'seen', rule, job, isPromised, sentence })
  }

  /** The answer; null after a failure that a fault may cause or that `expected` names. Any other is written down as a violation. */
  async try<Value>(what: string, make: () => Promise<Value>, ...expected: readonly ErrorCode[]): Promise<Value | null> {
    try {
      return await make()
    } catch (error) {
      if (isMillraceError(error, ...PASSING, ...expected) || this.signal.aborted) return null
      const code = String(fieldOf(error, 'code') ?? 'no code')
      this.seen('errors', null, false, `${what} was answered with ${code}: ${messageOf(error)}`)
      return null
    }
  }
}
