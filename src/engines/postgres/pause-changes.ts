import { systemClock, watchEvery } from '../../time/clock.ts'

/** A worker obeys a pause within a second. */
const LOOK_MS = 1_000
const CHECK_MS = 250

/**
 * Tells listeners to read the pauses again: when a look for jobs saw others, and after a second without one, because only
 * a worker that waits for jobs looks for them.
 */
export class PauseChanges {
  readonly #listeners = new Set<() => void>()
  #seen: string | null = null
  #seenAtMs = 0
  #stop: (() => void) | null = null

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    this.#seenAtMs = systemClock.monotonicMs()
    this.#stop ??= watchEvery(CHECK_MS, () => this.#check())
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size === 0) this.close()
    }
  }

  /** `pauses`: a text that is another whenever one was set or lifted. */
  saw(pauses: string | null): void {
    this.#seenAtMs = systemClock.monotonicMs()
    if (pauses === this.#seen) return
    this.#seen = pauses
    this.#tell()
  }

  close(): void {
    this.#stop?.()
    this.#stop = null
  }

  #check(): void {
    const nowMs = systemClock.monotonicMs()
    if (nowMs - this.#seenAtMs < LOOK_MS) return
    this.#seenAtMs = nowMs
    this.#tell()
  }

  #tell(): void {
    for (const listener of this.#listeners) listener()
  }
}
