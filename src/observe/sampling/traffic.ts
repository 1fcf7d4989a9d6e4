import type { Counts, TypeCounts } from '../../engine/engine.ts'
import type { Events, MillEvents } from '../../events.ts'
import type { JobView } from '../../job/job.ts'
import type { Clock } from '../../time/clock.ts'
import { Moment } from '../../time/clock.ts'
import { Histogram } from '../histogram.ts'
import type { ReportedEnds } from './reported-work.ts'

/** What happened in one step. Null: unknown. */
export interface Traffic {
  readonly completedPerSecond: number | null
  readonly failedPerSecond: number | null
  readonly enqueuedPerSecond: number | null
  readonly waitP50Ms: number | null
  readonly waitP95Ms: number | null
  readonly waitP99Ms: number | null
  readonly durationP50Ms: number | null
  readonly durationP95Ms: number | null
  readonly durationP99Ms: number | null
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
  #finished = 0
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

  /** Whether this process has run jobs since the last step. Otherwise only the store can tell. */
  get isLocal(): boolean {
    return this.#workers > 0 || this.#hasSeenWork
  }

  get workers(): number {
    return this.#workers
  }

  /** Jobs that workers of this process have completed or given up since it started. */
  get finished(): number {
    return this.#finished
  }

  /** What happened since the last call. */
  take(stepMs: number): Traffic {
    const perSecond = (count: number): number => (count * 1_000) / stepMs
    const traffic = {
      completedPerSecond: perSecond(this.#completed),
      failedPerSecond: perSecond(this.#failed),
      enqueuedPerSecond: perSecond(this.#enqueued),
      ...timesOf(this.#waits, this.#durations),
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
    if (outcome.kind !== 'retry') this.#finished += 1
    if (outcome.kind === 'complete') this.#completed += 1
    else this.#failed += 1
  }
}

type Times = Omit<Traffic, keyof Rates>

function timesOf(waits: Histogram, durations: Histogram): Times {
  return {
    waitP50Ms: shownMs(waits, 0.5),
    waitP95Ms: shownMs(waits, 0.95),
    waitP99Ms: shownMs(waits, 0.99),
    durationP50Ms: shownMs(durations, 0.5),
    durationP95Ms: shownMs(durations, 0.95),
    durationP99Ms: shownMs(durations, 0.99),
  }
}

function shownMs(histogram: Histogram, share: number): number | null {
  const ms = histogram.percentile(share)
  return ms === null ? null : Math.max(LEAST_MS, ms)
}

/** The times of jobs that completed, where they are kept. */
export function timesOfJobs(completed: readonly JobView[]): Times {
  const [waits, durations] = [new Histogram(RESOLUTION_MS), new Histogram(RESOLUTION_MS)]
  for (const { startedAtMs, runAtMs, durationMs, attempt } of completed) {
    if (durationMs !== null) durations.add(durationMs)
    if (startedAtMs !== null && attempt === 1) waits.add(Math.max(0, startedAtMs - runAtMs))
  }
  return timesOf(waits, durations)
}

/** What is known of the store at one moment. */
export interface Stored {
  readonly counts: Counts
  readonly atMs: number
}

type Rates = Pick<Traffic, 'completedPerSecond' | 'failedPerSecond' | 'enqueuedPerSecond'>

const UNKNOWN: Rates = { completedPerSecond: null, failedPerSecond: null, enqueuedPerSecond: null }

/**
 * The work of all processes, from two counts of the store: how many more jobs are completed, and how many more there are.
 * Jobs that are removed meanwhile are missing in them, and so are failed attempts: `reported` has both, from the workers.
 * Null is unknown: nothing was counted in between, or nobody reports, or more was removed than came.
 */
export function ratesBetween(before: Stored, after: Stored, reported: ReportedEnds | null): Rates {
  const elapsedMs = after.atMs - before.atMs
  if (elapsedMs <= 0) return UNKNOWN
  const perSecond = (count: number): number | null => (count < 0 ? null : (count * 1_000) / elapsedMs)
  const more = (state: keyof TypeCounts, type: string): number =>
    (after.counts[type]?.[state] ?? 0) - (before.counts[type]?.[state] ?? 0)
  let [completed, all] = [0, 0]
  // A type of which the store has nothing left is not counted.
  const types = [...Object.keys(before.counts), ...Object.keys(after.counts), ...(reported?.keys() ?? [])]
  for (const type of new Set(types)) {
    const ended = reported?.get(type)
    const done = ended?.isRemoved ? ended.completed : more('completed', type)
    completed += done
    all += done + more('ready', type) + more('delayed', type) + more('inProgress', type) + more('dead', type)
  }
  const failed = reported === null ? null : [...reported.values()].reduce((sum, one) => sum + one.failed, 0)
  return {
    completedPerSecond: perSecond(completed),
    failedPerSecond: failed === null ? null : perSecond(failed),
    enqueuedPerSecond: completed < 0 ? null : perSecond(all),
  }
}

/**
 * How many jobs were enqueued while only this process worked: those that came to the store, and those it `finished`
 * meanwhile. Other processes may enqueue them. Null when the store was not counted in between.
 */
export function enqueuedBetween(before: Stored, after: Stored, finished: number): number | null {
  const elapsedMs = after.atMs - before.atMs
  if (elapsedMs <= 0) return null
  const open = ({ counts }: Stored): number =>
    total(counts, 'ready') + total(counts, 'delayed') + total(counts, 'inProgress')
  return (Math.max(0, open(after) - open(before) + finished) * 1_000) / elapsedMs
}

export function total(counts: Counts, state: keyof TypeCounts): number {
  return Object.values(counts).reduce((sum, one) => sum + one[state], 0)
}
