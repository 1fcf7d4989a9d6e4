import type { Counts } from '../../engine/engine.ts'
import type { Events, MillEvents } from '../../events.ts'
import type { Clock } from '../../time/clock.ts'
import { Moment } from '../../time/clock.ts'
import { Latencies } from './latencies.ts'

/** What went through in one step of time. */
export interface Traffic {
  readonly completedPerSecond: number | null
  readonly failedPerSecond: number | null
  readonly enqueuedPerSecond: number | null
  readonly waitP50Ms: number | null
  readonly waitP95Ms: number | null
  readonly durationP50Ms: number | null
  readonly durationP95Ms: number | null
}

/** Listens to the workers of this process. It adds numbers and keeps no job, so it costs a worker next to nothing. */
export class LocalTraffic {
  readonly #now: Moment
  readonly #detachers: readonly (() => void)[]
  readonly #waits = new Latencies()
  readonly #durations = new Latencies()
  #workers = 0
  #completed = 0
  #failed = 0
  #enqueued = 0
  #hasSeenWork = false

  constructor(events: Events, clock: Clock) {
    this.#now = new Moment(() => clock.nowMs())
    this.#detachers = [
      events.on('worker.started', () => this.#begin()),
      events.on('worker.stopped', () => {
        this.#workers -= 1
      }),
      events.on('job.enqueued', () => {
        this.#enqueued += 1
      }),
      events.on('job.started', (event) => this.#started(event)),
      events.on('job.settled', (event) => this.#settled(event)),
    ]
  }

  /** Whether workers of this process were at work since the last look: then its figures are those of the mill, or a part. */
  get isLocal(): boolean {
    return this.#workers > 0 || this.#hasSeenWork
  }

  /** What came since the last look. */
  take(stepMs: number): Traffic {
    const perSecond = (count: number): number => (count * 1_000) / stepMs
    const traffic = {
      completedPerSecond: perSecond(this.#completed),
      failedPerSecond: perSecond(this.#failed),
      enqueuedPerSecond: perSecond(this.#enqueued),
      waitP50Ms: this.#waits.quantile(0.5),
      waitP95Ms: this.#waits.quantile(0.95),
      durationP50Ms: this.#durations.quantile(0.5),
      durationP95Ms: this.#durations.quantile(0.95),
    }
    this.#completed = 0
    this.#failed = 0
    this.#enqueued = 0
    this.#hasSeenWork = false
    this.#waits.clear()
    this.#durations.clear()
    return traffic
  }

  close(): void {
    for (const detach of this.#detachers) detach()
  }

  #begin(): void {
    this.#workers += 1
  }

  #started({ job, attempt }: MillEvents['job.started']): void {
    this.#hasSeenWork = true
    if (attempt === 1) this.#waits.record(Math.max(0, this.#now.ms - job.runAtMs))
  }

  #settled({ outcome, durationMs }: MillEvents['job.settled']): void {
    this.#hasSeenWork = true
    if (outcome.kind === 'release') return
    this.#durations.record(durationMs)
    if (outcome.kind === 'complete') this.#completed += 1
    else this.#failed += 1
  }
}

/**
 * What can be told of workers elsewhere, from two counts of the store: how many more are finished. Null where fewer are,
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
