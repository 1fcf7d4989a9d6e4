import { monitorEventLoopDelay } from 'node:perf_hooks'

/**
 * How often it looks where Node cannot measure each turn of the event loop: a delay is then measured up to this much too
 * short, and one that is shorter may fall between two looks. Every look wakes an idle process.
 */
const LOOK_MS = 500

/** How late the event loop of this process runs what is due, in real time, whatever clock is injected. */
export class LoopDelay {
  readonly #hasTurns = measuresTurns(process.versions.node)
  readonly #seen = monitorEventLoopDelay({ samplePerIteration: this.#hasTurns, resolution: LOOK_MS })

  /** The longest since the last call; null at the first, with which it begins to look. */
  take(): number | null {
    if (this.#seen.enable()) {
      // What Node measures first reaches back to a time before it looked.
      setImmediate(() => setImmediate(() => this.#seen.reset()))
      return null
    }
    const { max, count } = this.#seen
    this.#seen.reset()
    // Looks are counted as the times between them.
    return count === 0 ? null : Math.max(0, Math.round(max / 1e6 - (this.#hasTurns ? 0 : LOOK_MS)))
  }

  close(): void {
    this.#seen.disable()
  }
}

/** Node 26.5 brought it, and 24.21 has it. */
export function measuresTurns(nodeVersion: string): boolean {
  const [major = 0, minor = 0] = nodeVersion.split('.').map(Number)
  if (major === 24) return minor >= 21
  return major > 26 || (major === 26 && minor >= 5)
}
