import { ClosedError } from '../errors.ts'
import type { Log } from '../job/definition.ts'
import type { Keeper } from '../keeper/keeper.ts'
import type { Clock } from '../time/clock.ts'
import type { Worker } from '../worker/worker.ts'

/** How long closing the engine may take; the workers have stopped by then. */
const CLOSE_MS = 3_000

/** From the opening of a mill to its close: the workers and keepers that it has started, and what it still accepts. */
export class Lifetime {
  readonly #started = new Set<Worker | Keeper>()
  #closing: Promise<void> | null = null
  /** Workers that drain may still run handlers, and these may enqueue; after that nobody may. */
  #isDrained = false
  readonly #clock: Clock
  readonly #log: Log

  constructor(clock: Clock, log: Log) {
    this.#clock = clock
    this.#log = log
  }

  /** Refuses new workers and keepers from the first `close` on. */
  assertOpen(): void {
    if (this.#closing !== null) throw new ClosedError('this mill')
  }

  assertTakesJobs(): void {
    if (this.#isDrained) throw new ClosedError('this mill')
  }

  /** One that was being started when the mill closed is stopped again. */
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

  /** A store that does not answer is not waited for (I8): what was not acknowledged by now was not promised either. */
  async #closeWithin(closing: Promise<void>): Promise<void> {
    const over = new AbortController()
    const late = this.#clock.sleep(CLOSE_MS, over.signal).then(() => {
      if (!over.signal.aborted) this.#log.error('The engine did not close in time', { waited_ms: CLOSE_MS })
    })
    await Promise.race([closing, late]).finally(() => over.abort())
  }
}
