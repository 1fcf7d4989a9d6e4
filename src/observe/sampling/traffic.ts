import type { Counts } from '../../engine/engine.ts'
import type { Events, MillEvents } from '../../events.ts'
import type { JobView } from '../../job/job.ts'
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

/** What is known of the store at one moment. */
export interface Stored {
  readonly counts: Counts
  readonly atMs: number
}

/**
 * The work of other processes, from two counts of the store: how many more jobs are finished, and how many more there are.
 * Null when there are fewer, because finished jobs were removed in between. `completed`: some that completed in between,
 * from which come the times; null where none of them is kept.
 */
export function trafficBetween(before: Stored, after: Stored, completed: readonly JobView[] = []): Traffic {
  const elapsedMs = after.atMs - before.atMs
  const more = (...states: readonly (keyof Counts[string])[]): number | null => {
    const difference = states.reduce((sum, state) => sum + total(after.counts, state) - total(before.counts, state), 0)
    return difference < 0 || elapsedMs <= 0 ? null : (difference * 1_000) / elapsedMs
  }
  const [waits, durations] = [new Histogram(RESOLUTION_MS), new Histogram(RESOLUTION_MS)]
  for (const { startedAtMs, runAtMs, durationMs, attempt } of completed) {
    if (durationMs !== null) durations.add(durationMs)
    if (startedAtMs !== null && attempt === 1) waits.add(Math.max(0, startedAtMs - runAtMs))
  }
  const [completedPerSecond, failedPerSecond] = [more('completed'), more('dead')]
  const isRemoving = completedPerSecond === null || failedPerSecond === null
  return {
    completedPerSecond,
    failedPerSecond,
    enqueuedPerSecond: isRemoving ? null : more('ready', 'delayed', 'inProgress', 'completed', 'dead'),
    waitP50Ms: shownMs(waits, 0.5),
    waitP95Ms: shownMs(waits, 0.95),
    durationP50Ms: shownMs(durations, 0.5),
    durationP95Ms: shownMs(durations, 0.95),
  }
}

export function total(counts: Counts, state: keyof Counts[string]): number {
  return Object.values(counts).reduce((sum, one) => sum + one[state], 0)
}
