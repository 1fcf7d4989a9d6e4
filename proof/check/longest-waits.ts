/** Finds quickly a wait that goes before a job and lasts long enough. */
import { firstIndex } from './spans.ts'
import type { Wait } from './waiting.ts'

/** The waits of one type and priority, by due time: for each place the one up to it that ends last (a Fenwick tree). */
class Lane {
  readonly #dueMs: readonly number[]
  readonly #tree: (Wait | null)[]

  constructor(waits: readonly Wait[]) {
    this.#dueMs = waits.map(dueOf).sort((a, b) => a - b)
    this.#tree = Array.from({ length: waits.length + 1 }, () => null)
  }

  add(wait: Wait): void {
    const dueMs = dueOf(wait)
    const first = firstIndex(this.#dueMs.length, (index) => (this.#dueMs[index] ?? 0) >= dueMs)
    for (let place = first + 1; place < this.#tree.length; place += place & -place) {
      const known = this.#tree[place] ?? null
      if (known === null || known.toMs < wait.toMs) this.#tree[place] = wait
    }
  }

  /** Of those that were due before, the one that ends last. */
  longestBefore(dueMs: number): Wait | null {
    let longest: Wait | null = null
    for (
      let place = firstIndex(this.#dueMs.length, (index) => (this.#dueMs[index] ?? 0) >= dueMs);
      place > 0;
      place -= place & -place
    ) {
      const wait = this.#tree[place] ?? null
      if (wait !== null && (longest === null || wait.toMs > longest.toMs)) longest = wait
    }
    return longest
  }
}

/** A job whose due time is not known is compared by its priority alone. */
function dueOf({ runAtMs }: Wait): number {
  return runAtMs ?? Number.MAX_VALUE
}

export class LongestWaits {
  readonly #waits: readonly Wait[]
  readonly #lanes = new Map<string, Map<number, Lane>>()
  #added = 0

  constructor(waits: readonly Wait[]) {
    this.#waits = waits.toSorted((a, b) => a.fromMs - b.fromMs)
    for (const [type, own] of Map.groupBy(waits, (wait) => wait.type)) {
      const lanes = [...Map.groupBy(own, ({ priority }) => priority)]
      this.#lanes.set(type, new Map(lanes.map(([priority, lane]) => [priority, new Lane(lane)])))
    }
  }

  /** Those that began before then. */
  addUntil(atMs: number): void {
    for (
      let wait = this.#waits[this.#added];
      wait !== undefined && wait.fromMs < atMs;
      wait = this.#waits[this.#added]
    ) {
      this.#lanes.get(wait.type)?.get(wait.priority)?.add(wait)
      this.#added += 1
    }
  }

  /** One of the type that goes before and still waited at `untilMs`. */
  moreUrgent(than: { type: string; priority: number; dueMs: number; untilMs: number }): Wait | null {
    for (const [priority, lane] of this.#lanes.get(than.type) ?? []) {
      if (priority > than.priority) continue
      const wait = lane.longestBefore(priority < than.priority ? Number.POSITIVE_INFINITY : than.dueMs)
      if (wait !== null && wait.toMs >= than.untilMs) return wait
    }
    return null
  }
}
