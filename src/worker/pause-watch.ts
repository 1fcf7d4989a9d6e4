import type { PauseStore } from '../engine/pauses.ts'
import type { Clock } from '../time/clock.ts'

interface PauseWatchParts {
  readonly clock: Clock
  readonly pauses: Pick<PauseStore, 'list' | 'onChange'>
  onChange(paused: ReadonlySet<string>): void
  onError(error: unknown): void
}

/** How often to look where the engine does not announce changes. */
const LOOK_MS = 1_000

/**
 * Tracks which types are paused, so that claims need not ask. While the store cannot be reached, the last known state
 * stays in force: a short outage must not resume a paused type.
 */
export class PauseWatch {
  readonly #parts: PauseWatchParts
  #paused: ReadonlySet<string> = new Set()
  #cancel: () => void = () => {}
  #isTroubled = false
  #isClosed = false

  constructor(parts: PauseWatchParts) {
    this.#parts = parts
  }

  /** Resolves after the first look, so that no job of a paused type is claimed before. */
  async start(): Promise<void> {
    const { pauses } = this.#parts
    await this.#look()
    if (this.#isClosed) return
    if (pauses.onChange !== undefined) this.#cancel = pauses.onChange(() => void this.#look())
    else this.#lookLater()
  }

  close(): void {
    this.#isClosed = true
    this.#cancel()
  }

  #lookLater(): void {
    this.#cancel = this.#parts.clock.after(LOOK_MS, () => {
      void this.#look().then(() => {
        if (!this.#isClosed) this.#lookLater()
      })
    })
  }

  /** Never rejects. An outage is reported once, not at every look. */
  async #look(): Promise<void> {
    try {
      this.#update((await this.#parts.pauses.list()).map(({ type }) => type))
      this.#isTroubled = false
    } catch (error) {
      if (!this.#isTroubled && !this.#isClosed) this.#parts.onError(error)
      this.#isTroubled = true
    }
  }

  #update(types: readonly string[]): void {
    const isSame = types.length === this.#paused.size && types.every((type) => this.#paused.has(type))
    if (isSame || this.#isClosed) return
    this.#paused = new Set(types)
    this.#parts.onChange(this.#paused)
  }
}
