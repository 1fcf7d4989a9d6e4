import type { Transaction } from '../../src/engine/engine.ts'

/** A transaction of the user's own that has begun. */
export interface OpenTransaction {
  /** As `enqueue` takes it. */
  readonly within: Transaction
  commit(): Promise<void>
  /** Whatever becomes of it: a transaction whose commit was never asked for does not happen. */
  rollBack(): Promise<void>
}

/** Begins transactions in the store of the jobs. Where the engine cannot join one there is no such thing. */
export type BeginTransaction = () => Promise<OpenTransaction>

/**
 * What transactions are called in the history. A handle may serve several, one after the other.
 *
 * @example
 * const names = new TransactionNames()
 * const mill = await open(recorded(engine, recorder, names.nameOf))
 */
export class TransactionNames {
  readonly #names = new WeakMap<object, string>()

  give(within: Transaction, name: string): void {
    this.#names.set(within, name)
  }

  readonly nameOf = (within: Transaction): string => this.#names.get(within) ?? 'unnamed'
}
