import type { Beat, Presence } from '../engine/presence.ts'
import { type Clock, systemClock } from '../time/clock.ts'

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
export class MemoryPresence implements Presence {
  readonly #clock: Clock
  readonly #kept = new Map<string, Kept>()

  constructor(clock: Clock = systemClock) {
    this.#clock = clock
  }

  async beat(beats: readonly Beat[], ttlMs: number): Promise<void> {
    const untilMs = this.#clock.nowMs() + ttlMs
    for (const beat of beats) this.#kept.set(keyOf(beat.type, beat.instance), { beat, untilMs })
  }

  async gone(instance: string, types: readonly string[]): Promise<void> {
    for (const type of types) this.#kept.delete(keyOf(type, instance))
  }

  async list(): Promise<readonly Beat[]> {
    const nowMs = this.#clock.nowMs()
    for (const [key, { untilMs }] of this.#kept) if (untilMs <= nowMs) this.#kept.delete(key)
    return [...this.#kept.values()].map(({ beat }) => beat)
  }
}

function keyOf(type: string, instance: string): string {
  return `${type}\n${instance}`
}
