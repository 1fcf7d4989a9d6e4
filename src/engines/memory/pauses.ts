import type { Pause, Pauses } from '../../engine/pauses.ts'
import type { Clock } from '../../time/clock.ts'
import type { MemoryStore } from './store.ts'

const byType = (one: Pause, other: Pause): number => (one.type < other.type ? -1 : 1)

/** The pauses of a store, and who wants to hear of a change. */
export class PausedTypes extends Map<string, Pause> {
  readonly #listeners = new Set<() => void>()

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  tell(): void {
    for (const listener of [...this.#listeners]) listener()
  }
}

export function createPauses(open: () => MemoryStore, clock: Clock): Pauses {
  return {
    pause: async (type, { who, reason }) => {
      const { pauses } = open()
      if (pauses.has(type)) return false
      pauses.set(type, { type, who, reason, sinceMs: clock.nowMs() })
      pauses.tell()
      return true
    },
    resume: async (type) => {
      const { pauses } = open()
      const wasPaused = pauses.delete(type)
      if (wasPaused) pauses.tell()
      return wasPaused
    },
    list: async () => [...open().pauses.values()].sort(byType),
    onChange: (listener) => open().pauses.onChange(listener),
  }
}
