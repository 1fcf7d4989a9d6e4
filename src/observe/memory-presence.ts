import type { Beat, RememberingPresence, Seen } from '../engine/presence.ts'
import { type Clock, systemClock } from '../time/clock.ts'

/** A worker that died without a goodbye can be missed for a day. */
const SEEN_MS = 86_400_000

interface Kept {
  readonly beat: Beat
  readonly untilMs: number
}

/**
 * Presence in this process alone: for one process that has all workers, and for tests.
 *
 * @example
 * const presence = new MemoryPresence()
 * attachPresence(mill, { presence })
 */
export class MemoryPresence implements RememberingPresence {
  readonly #clock: Clock
  readonly #kept = new Map<string, Kept>()
  readonly #seen = new Map<string, Seen>()

  constructor(clock: Clock = systemClock) {
    this.#clock = clock
  }

  async beat(beats: readonly Beat[], ttlMs: number): Promise<void> {
    const untilMs = this.#clock.nowMs() + ttlMs
    for (const beat of beats) {
      const { type, instance, atMs } = beat
      this.#kept.set(keyOf(type, instance), { beat, untilMs })
      this.#seen.set(keyOf(type, instance), { type, instance, atMs })
    }
  }

  async gone(instance: string, types: readonly string[]): Promise<void> {
    for (const type of types) {
      this.#kept.delete(keyOf(type, instance))
      this.#seen.delete(keyOf(type, instance))
    }
  }

  async list(): Promise<readonly Beat[]> {
    const nowMs = this.#clock.nowMs()
    for (const [key, { untilMs }] of this.#kept) if (untilMs <= nowMs) this.#kept.delete(key)
    return [...this.#kept.values()].map(({ beat }) => beat)
  }

  async seen(): Promise<readonly Seen[]> {
    const sinceMs = this.#clock.nowMs() - SEEN_MS
    for (const [key, { atMs }] of this.#seen) if (atMs < sinceMs) this.#seen.delete(key)
    return [...this.#seen.values()]
  }
}

function keyOf(type: string, instance: string): string {
  return `${type}\n${instance}`
}
