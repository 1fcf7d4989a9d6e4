import { monitorEventLoopDelay } from 'node:perf_hooks'

/**
 * How often it looks: a delay is measured up to this much too short, and one that is shorter may fall between two looks.
 * Looking more often wakes an idle process more often, which is most of what such a process costs.
 */
const LOOK_MS = 500

/** How late the event loop of this process runs what is due, in real time, whatever clock is injected. */
export class LoopDelay {
  readonly #seen = monitorEventLoopDelay({ resolution: LOOK_MS })

  /** The longest since the last call; null at the first, with which it begins to look. */
  take(): number | null {
    if (this.#seen.enable()) return null
    const { max, count } = this.#seen
    this.#seen.reset()
    // What it counts are the times between two looks.
    return count === 0 ? null : Math.max(0, Math.round(max / 1e6 - LOOK_MS))
  }

  close(): void {
    this.#seen.disable()
  }
}
