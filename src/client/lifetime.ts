import { ClosedError } from '../errors.ts'
import type { Log } from '../job/definition.ts'
import type { Keeper } from '../keeper/keeper.ts'
import type { Clock } from '../time/clock.ts'
import { waitAtMost } from '../time/wait.ts'
import type { Worker } from '../worker/worker.ts'

/** How long closing the engine may take, after the workers have stopped. */
const CLOSE_MS = 3_000

/** Tracks the workers and keepers of a mill, and what the mill still accepts while it closes. */
export class Lifetime {
  readonly #started = new Set<Worker | Keeper>()
  #closing: Promise<void> | null = null
  /** Handlers of draining workers may still enqueue. Once the workers have stopped, nothing may. */
  #isDrained = false
  readonly #clock: Clock
  readonly #log: Log

  constructor(clock: Clock, log: Log) {
    this.#clock = clock
    this.#log = log
  }

  /** Refuses new workers and keepers once `close` was called. */
  assertOpen(): void {
    if (this.#closing !== null) throw new ClosedError('this mill')
  }

  assertTakesJobs(): void {
    if (this.#isDrained) throw new ClosedError('this mill')
  }

  /** A worker or keeper that was starting when the mill closed is stopped again. */
  async remember<Started extends Worker | Keeper>(started: Started): Promise<Started> {
    if (this.#closing !== null) {
      await started.stop('close')
      throw new ClosedError('this mill')
    }
    this.#started.add(started)
    void started.stopped.then(() => this.#started.delete(started))
    return started
  }

  /** Stops everything, then calls `closeEngine`. A second call returns the same promise. */
  close(closeEngine: () => Promise<void>): Promise<void> {
    this.#closing ??= this.#close(closeEngine)
    return this.#closing
  }

  async #close(closeEngine: () => Promise<void>): Promise<void> {
    const started = [...this.#started]
    this.#isDrained = started.length === 0
    await Promise.all(started.map((each) => each.stop('close')))
    this.#isDrained = true
    await this.#closeWithin(closeEngine())
  }

  /** Does not wait for a store that does not answer: everything acknowledged is already stored. */
  async #closeWithin(closing: Promise<void>): Promise<void> {
    if (await waitAtMost(this.#clock, CLOSE_MS, closing)) await closing
    else this.#log.error('The engine did not close in time', { waited_ms: CLOSE_MS })
  }
}
