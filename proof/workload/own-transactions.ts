import type { Transaction } from '../../src/engine/engine.ts'

/** A transaction of the user's own that has begun. */
export interface OpenTransaction {
  /** As `enqueue` takes it. */
  readonly within: Transaction
  commit(): Promise<void>
  /** May fail: a transaction that was never committed has no effect in any case. */
  rollBack(): Promise<void>
}

/** Begins a transaction in the store of the jobs, for engines that can join one. */
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
