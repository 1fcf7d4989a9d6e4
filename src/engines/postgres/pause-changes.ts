import { backgroundClock } from '../../time/clock.ts'

/** A worker that waits looks sooner than this, so that one timer is never due while it does. */
const LOOK_MS = 1_300

/**
 * Tells listeners to read the pauses again: when a look for jobs saw others, and after a while without one, because only
 * a worker that waits for jobs looks for them.
 */
export class PauseChanges {
  readonly #listeners = new Set<() => void>()
  #seen: string | null = null
  #stop: () => void = () => {}

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    this.#lookLater()
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size === 0) this.close()
    }
  }

  /** `pauses`: a text that is another whenever one was set or lifted. */
  saw(pauses: string | null): void {
    this.#lookLater()
    if (pauses === this.#seen) return
    this.#seen = pauses
    this.#tell()
  }

  close(): void {
    this.#stop()
    this.#stop = () => {}
  }

  #lookLater(): void {
    this.#stop()
    if (this.#listeners.size === 0) return
    this.#stop = backgroundClock.after(LOOK_MS, () => {
      this.#lookLater()
      this.#tell()
    })
  }

  #tell(): void {
    for (const listener of this.#listeners) listener()
  }
}
