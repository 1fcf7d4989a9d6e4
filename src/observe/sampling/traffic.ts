import type { Counts } from '../../engine/engine.ts'
import type { Events, MillEvents } from '../../events.ts'
import type { Clock } from '../../time/clock.ts'
import { Moment } from '../../time/clock.ts'
import { Histogram } from '../histogram.ts'

/** What happened in one step. Null: unknown. */
export interface Traffic {
  readonly completedPerSecond: number | null
  readonly failedPerSecond: number | null
  readonly enqueuedPerSecond: number | null
  readonly waitP50Ms: number | null
  readonly waitP95Ms: number | null
  readonly durationP50Ms: number | null
  readonly durationP95Ms: number | null
}

const RESOLUTION_MS = 0.01
/** Shorter durations are shown as this. */
const LEAST_MS = 0.1

/** Counts what the workers of this process do. */
export class LocalTraffic {
  readonly #now: Moment
  readonly close: () => void
  readonly #waits = new Histogram(RESOLUTION_MS)
  readonly #durations = new Histogram(RESOLUTION_MS)
  #workers = 0
  #completed = 0
  #failed = 0
  #enqueued = 0
  #hasSeenWork = false

  constructor(events: Events, clock: Clock) {
    this.#now = new Moment(() => clock.nowMs())
    this.close = events.attach({
      'worker.started': () => {
        this.#workers += 1
      },
      'worker.stopped': () => {
        this.#workers -= 1
      },
      'job.enqueued': () => {
        this.#enqueued += 1
      },
      'job.started': (event) => this.#started(event),
      'job.settled': (event) => this.#settled(event),
    })
  }

  /** Whether this process has run jobs since the last step. Otherwise only the store's counts can tell. */
  get isLocal(): boolean {
    return this.#workers > 0 || this.#hasSeenWork
  }

  /** What happened since the last call. */
  take(stepMs: number): Traffic {
    const perSecond = (count: number): number => (count * 1_000) / stepMs
    const traffic = {
      completedPerSecond: perSecond(this.#completed),
      failedPerSecond: perSecond(this.#failed),
      enqueuedPerSecond: perSecond(this.#enqueued),
      waitP50Ms: shownMs(this.#waits, 0.5),
      waitP95Ms: shownMs(this.#waits, 0.95),
      durationP50Ms: shownMs(this.#durations, 0.5),
      durationP95Ms: shownMs(this.#durations, 0.95),
    }
    this.#completed = 0
    this.#failed = 0
    this.#enqueued = 0
    this.#hasSeenWork = false
    this.#waits.clear()
    this.#durations.clear()
    return traffic
  }

  #started({ job, attempt }: MillEvents['job.started']): void {
    this.#hasSeenWork = true
    if (attempt === 1) this.#waits.add(Math.max(0, this.#now.ms - job.runAtMs))
  }

  #settled({ outcome, durationMs }: MillEvents['job.settled']): void {
    this.#hasSeenWork = true
    if (outcome.kind === 'release') return
    this.#durations.add(durationMs)
    if (outcome.kind === 'complete') this.#completed += 1
    else this.#failed += 1
  }
}

function shownMs(histogram: Histogram, share: number): number | null {
  const ms = histogram.percentile(share)
  return ms === null ? null : Math.max(LEAST_MS, ms)
}

/**
 * The work of other processes, from two counts of the store: how many more jobs are finished. Null when there are fewer,
 * because finished jobs were removed in between.
 */
export function trafficBetween(before: Counts, after: Counts, elapsedMs: number): Traffic {
  const more = (state: 'completed' | 'dead'): number | null => {
    const difference = total(after, state) - total(before, state)
    return difference < 0 || elapsedMs <= 0 ? null : (difference * 1_000) / elapsedMs
  }
  return {
    completedPerSecond: more('completed'),
    failedPerSecond: more('dead'),
    enqueuedPerSecond: null,
    waitP50Ms: null,
    waitP95Ms: null,
    durationP50Ms: null,
    durationP95Ms: null,
  }
}

export function total(counts: Counts, state: keyof Counts[string]): number {
  return Object.values(counts).reduce((sum, one) => sum + one[state], 0)
}
