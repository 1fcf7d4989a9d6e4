import type { Clock } from '../../time/clock.ts'
import type { Blocker } from './blocker.ts'

/**
 * Wakes a claim that waits. BullMQ rings by putting a marker into a sorted set of the queue, whoever adds the job; one
 * BZPOPMIN over all queues hears it. It stays on its way when a claim ends, because it cannot be taken back: what it
 * brings then wakes the next claim.
 */
export class Doorbell {
  readonly #blocker: Blocker
  readonly #clock: Clock
  readonly #markers: readonly string[]
  readonly #pollMs: number
  readonly #closing = new AbortController()
  #hearing: Promise<void> | null = null
  #rung = false

  constructor(blocker: Blocker, clock: Clock, markers: readonly string[], pollMs: number) {
    this.#blocker = blocker
    this.#clock = clock
    this.#markers = markers
    this.#pollMs = pollMs
  }

  /** Resolves at the latest after `ms`, when somebody rings, on abort and on `close`. Never rejects. */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    if (!this.#rung) {
      this.#hearing ??= this.#hear()
      const over = new AbortController()
      const asleep = this.#clock.sleep(ms, AbortSignal.any([signal, over.signal, this.#closing.signal]))
      await Promise.race([this.#hearing, asleep])
      over.abort()
    }
    this.#rung = false
  }

  async #hear(): Promise<void> {
    // What is lost with a connection is found by looking again, so the end of a wait rings as well.
    await this.#blocker.pop(this.#markers, this.#pollMs, this.#closing.signal)
    this.#hearing = null
    this.#rung = true
  }

  close(): void {
    this.#closing.abort()
    this.#blocker.close()
  }
}
