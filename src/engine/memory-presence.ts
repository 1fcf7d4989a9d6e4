import { type Clock, systemClock } from '../time/clock.ts'
import { type Beat, type RememberingPresence, SEEN_MS, type Seen } from './presence.ts'

interface Kept {
  readonly beat: Beat
  readonly untilMs: number
}

/** What was said, by whoever said it. Several clocks may look at one board. */
export class PresenceBoard {
  readonly kept = new Map<string, Kept>()
  readonly seen = new Map<string, Seen>()

  /** The clock was set by so much. */
  shift(ms: number): void {
    for (const [key, { beat, untilMs }] of this.kept) this.kept.set(key, { beat, untilMs: untilMs + ms })
  }
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
  readonly #board: PresenceBoard

  constructor(clock: Clock = systemClock, board: PresenceBoard = new PresenceBoard()) {
    this.#clock = clock
    this.#board = board
  }

  async beat(beats: readonly Beat[], ttlMs: number): Promise<void> {
    const untilMs = this.#clock.nowMs() + ttlMs
    for (const beat of beats) {
      const { type, instance, atMs } = beat
      this.#board.kept.set(keyOf(type, instance), { beat, untilMs })
      this.#board.seen.set(keyOf(type, instance), { type, instance, atMs })
    }
  }

  async gone(instance: string, types: readonly string[]): Promise<void> {
    for (const type of types) {
      this.#board.kept.delete(keyOf(type, instance))
      this.#board.seen.delete(keyOf(type, instance))
    }
  }

  async list(): Promise<readonly Beat[]> {
    const nowMs = this.#clock.nowMs()
    for (const [key, { untilMs }] of this.#board.kept) if (untilMs <= nowMs) this.#board.kept.delete(key)
    return [...this.#board.kept.values()].map(({ beat }) => beat)
  }

  async seen(): Promise<readonly Seen[]> {
    const sinceMs = this.#clock.nowMs() - SEEN_MS
    for (const [key, { atMs }] of this.#board.seen) if (atMs < sinceMs) this.#board.seen.delete(key)
    return [...this.#board.seen.values()]
  }
}

function keyOf(type: string, instance: string): string {
  return `${type}\n${instance}`
}
