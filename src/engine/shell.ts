import { ClosedError } from '../errors.ts'
import type { DeadLetters } from './dead-letters.ts'
import type { Controls, Inspector } from './engine.ts'
import type { Leadership } from './leadership.ts'
import type { Pauses } from './pauses.ts'
import type { RememberingPresence } from './presence.ts'
import type { Retention } from './retention.ts'
import type { Schedules } from './schedules.ts'

/** Every facet that an engine can have. */
export interface Facets {
  readonly inspector: Inspector
  readonly controls: Controls
  readonly deadLetters: DeadLetters
  readonly schedules: Schedules
  readonly leadership: Leadership
  readonly retention: Retention
  readonly presence: RememberingPresence
  readonly pauses: Pauses
}

/**
 * What an engine with every facet is between `open` and `close`: opened once, however often it is asked to be; closed
 * for good; and of no use before and after. `Core` is what its parts share.
 */
export abstract class EngineShell<Core> {
  readonly #title: string
  #opened: { readonly core: Core; readonly facets: Facets } | null = null
  #opening: Promise<void> | null = null
  #closed = false

  /** `title`: as errors call it, such as 'this SQLite engine'. */
  constructor(title: string) {
    this.#title = title
  }

  /** Leaves nothing open where it rejects. */
  protected abstract connect(): Promise<{ readonly core: Core; readonly facets: Facets }>
  /** Called once, and only after `connect` has succeeded. */
  protected abstract disconnect(core: Core): Promise<void>

  /** Throws a ClosedError before `open` and after `close`. */
  protected get core(): Core {
    return this.#parts().core
  }

  open(): Promise<void> {
    if (this.#closed) return Promise.reject(new ClosedError(this.#title))
    this.#opening ??= this.#open().catch((error: unknown) => {
      this.#opening = null
      throw error
    })
    return this.#opening
  }

  async #open(): Promise<void> {
    this.#opened = await this.connect()
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#opening?.catch(() => {})
    const opened = this.#opened
    if (opened === null) return
    this.#opened = null
    await this.disconnect(opened.core)
  }

  get inspector(): Inspector {
    return this.#parts().facets.inspector
  }

  get controls(): Controls {
    return this.#parts().facets.controls
  }

  get deadLetters(): DeadLetters {
    return this.#parts().facets.deadLetters
  }

  get schedules(): Schedules {
    return this.#parts().facets.schedules
  }

  get leadership(): Leadership {
    return this.#parts().facets.leadership
  }

  get retention(): Retention {
    return this.#parts().facets.retention
  }

  get presence(): RememberingPresence {
    return this.#parts().facets.presence
  }

  get pauses(): Pauses {
    return this.#parts().facets.pauses
  }

  #parts(): { readonly core: Core; readonly facets: Facets } {
    if (this.#opened === null) throw new ClosedError(this.#title)
    return this.#opened
  }
}
