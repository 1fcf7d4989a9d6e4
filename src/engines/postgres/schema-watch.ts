import { isMillraceError, type MillraceError } from '../../errors.ts'
import type { Clock } from '../../time/clock.ts'

/** How often the version is looked at while the engine is used. */
const LOOK_MS = 1_000

/**
 * Notices that a newer Millrace has migrated the schema while this one runs. The look goes on beside the calls, so that none
 * waits for it; what it found holds for those that come after it.
 */
export class SchemaWatch {
  readonly #clock: Clock
  readonly #look: () => Promise<void>
  #lookedMs: number
  #isLooking = false
  #newer: MillraceError | null = null

  /** `look` rejects with ERR_SCHEMA_NEWER where that is so. */
  constructor(clock: Clock, look: () => Promise<void>) {
    this.#clock = clock
    this.#look = look
    this.#lookedMs = clock.monotonicMs()
  }

  /** Before anything new is begun: throws where the schema is newer. What is held may be settled all the same. */
  assertKnown(): void {
    const nowMs = this.#clock.monotonicMs()
    if (!this.#isLooking && nowMs - this.#lookedMs >= LOOK_MS) {
      this.#lookedMs = nowMs
      void this.#lookNow()
    }
    if (this.#newer !== null) throw this.#newer
  }

  async #lookNow(): Promise<void> {
    this.#isLooking = true
    try {
      await this.#look()
      this.#newer = null
    } catch (error) {
      // Any other trouble is told by the calls that meet it.
      if (isMillraceError(error, 'ERR_SCHEMA_NEWER')) this.#newer = error
    } finally {
      this.#isLooking = false
    }
  }
}
