import type { Engine, Transaction } from '../src/engine/engine.ts'
import type { Clock } from '../src/time/clock.ts'

/** What an engine's author gives to the suite: one fresh, empty store with an opened engine on it. */
export interface Harness {
  /** Opened. */
  readonly engine: Engine
  /** The time the engine lives in; mills and workers on it are given the same one. */
  readonly clock: Clock
  /**
   * An independent second view of the same data, as another process would have it. The suite opens it; opening twice is
   * harmless, so it may come opened.
   */
  other(): Promise<Engine>
  /** Lets that much of the engine's time pass: virtual clocks jump, real ones wait. The suite itself never sleeps. */
  advance(ms: number): Promise<void>
  /**
   * Sets the engine's wall clock by so many milliseconds while no time passes. Default: `clock.step(ms)`, where the clock
   * is a TestClock; needed where the store has a clock of its own that the test clock stands for.
   */
  step?(ms: number): Promise<void>
  /** Closes every view and removes the data. */
  destroy(): Promise<void>
  /** Begins a transaction of the user's own. Needed where `capabilities.transactionalEnqueue`. */
  transaction?(): Promise<OwnTransaction>
  /**
   * A further view of the same data, over a wire that can lose answers. Give it where the engine speaks to a server that
   * keeps leases; without it the suite loses answers by leaving before they come.
   */
  lossyView?(): Promise<LossyView>
  /** Where another process reaches the same data. Needed where the engine survives a process crash. */
  readonly url?: string
}

/** A view of the data from which answers get lost. The suite opens it; the harness closes it. */
export interface LossyView {
  readonly engine: Engine
  /**
   * The next request with this text in it is carried out, and its connection breaks before the answer arrives. The engine
   * may ask other things at any time, so the suite names the worker whose claim it means.
   */
  loseNextAnswer(requestText: string): void
}

/** A transaction begun outside the engine, with a table of the user's own in it. */
export interface OwnTransaction {
  /** What `enqueue` takes as `within`. */
  readonly within: Transaction
  /** Writes a row of the user's own inside the transaction. */
  note(text: string): Promise<void>
  /** The user's rows as they stand, after commit or rollback. */
  notes(): Promise<readonly string[]>
  commit(): Promise<void>
  rollback(): Promise<void>
}

export type CreateHarness = () => Promise<Harness>
