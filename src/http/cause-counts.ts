import type { Causes } from '../desk/groups.ts'
import { type Read, ThrottledQuery } from '../observe/sampling/throttled-query.ts'
import type { Clock } from '../time/clock.ts'

/** What a page hardly notices is counted for every reader, so small stores always have the present counts. */
const QUICK_MS = 50
/** A slow count takes at most a tenth of the time. */
const REST = 10
/** Names of types come from callers, and need not exist. */
const KEPT_MAX = 100

/**
 * Dead letters by cause, for pages that ask often. A hundred thousand letters take longer to count than a page should wait,
 * so readers after the first get the last counts with their time, and they are refreshed in the background.
 */
export class CauseCounts {
  readonly #clock: Clock
  readonly #kept = new Map<string, ThrottledQuery<Causes>>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The counts of one type, or of all. */
  read(type: string | undefined, count: () => Promise<Causes>): Promise<Read<Causes>> {
    const key = type ?? ''
    const known = this.#kept.get(key)
    if (known !== undefined) return known.read()
    const query = new ThrottledQuery(count, { everyMs: 0, rest: REST, quickMs: QUICK_MS, clock: this.#clock })
    this.#kept.set(key, query)
    const [oldest] = this.#kept.keys()
    if (this.#kept.size > KEPT_MAX && oldest !== undefined) this.#kept.delete(oldest)
    return query.read()
  }

  /** After an act on dead letters: the next reader counts. */
  forget(): void {
    this.#kept.clear()
  }
}
