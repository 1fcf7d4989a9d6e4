import type { Counts } from '../../engine/engine.ts'
import { pausesIn } from '../../engine/pauses.ts'
import { type Beat, type Presence, presenceIn } from '../../engine/presence.ts'
import type { JobView } from '../../job/job.ts'
import { type Clock, systemClock } from '../../time/clock.ts'
import { type Duration, parseDurationMs } from '../../time/duration.ts'
import {
  checkHealth,
  type Health,
  type HealthLimits,
  type HealthReason,
  type HealthWord,
  workersOf,
} from '../health.ts'
import { findWithin, type ObservedMill } from '../observed-mill.ts'
import { ReportedWork } from './reported-work.ts'
import { ThrottledQuery } from './throttled-query.ts'
import {
  enqueuedBetween,
  LocalTraffic,
  ratesBetween,
  type Stored,
  type Traffic,
  timesOfJobs,
  total,
} from './traffic.ts'

/** The state of the whole mill. */
export interface Overview {
  readonly atMs: number
  /** When the counts were taken: large stores are counted less often. */
  readonly countedAtMs: number
  readonly counts: Counts
  readonly paused: readonly string[]
  /** How long the oldest due job has been waiting; null when none waits. */
  readonly oldestWaitingMs: number | null
  readonly workers: number
  readonly alertsFiring: number
  readonly health: HealthWord
  /** Why it is not healthy; empty when it is. */
  readonly reasons: readonly HealthReason[]
}

/** What happened in one step. Null: unknown to this process. */
export interface HistoryPoint extends Traffic {
  readonly atMs: number
  readonly ready: number | null
  readonly delayed: number | null
  readonly inProgress: number | null
  readonly dead: number | null
}

export interface SamplingOptions {
  /** Between two samples; default: 2s. */
  readonly every?: Duration
  /** How long points are kept; default: 15m. */
  readonly keep?: Duration
  /** Which workers run; default: the engine's presence. */
  readonly presence?: Pick<Presence, 'list'>
  /** The limits of the health in the overview; default: those of `checkHealth`. */
  readonly health?: HealthLimits
  /** How many alerts fire; default: 0. */
  readonly alertsFiring?: () => number
  readonly clock?: Clock
}

export interface Sample {
  readonly overview: Overview
  readonly point: HistoryPoint
}

/**
 * Samples a mill at an interval, for pages and charts. One sampler serves any number of readers at the same cost. Start it
 * before workers, and close it before the mill.
 *
 * @example
 * const sampler = startSampling(mill)
 * const { counts, health } = await sampler.overview()
 */
export function startSampling(mill: SampledMill, options: SamplingOptions = {}): Sampler {
  return new Sampler(mill, options)
}

type SampledMill = ObservedMill<'ping' | 'counts' | 'inspector' | 'records' | 'workers'>

/** The counts of the store, and what this process had finished by then. */
interface StoredNow extends Stored {
  readonly finished: number
}

/** Enough for percentiles; a step of two seconds may have thousands. */
const COMPLETED_MAX = 200

export class Sampler {
  readonly stepMs: number
  /** What it samples: one store, or several joined. */
  readonly engine: SampledMill['engine']
  readonly #clock: Clock
  readonly #counts: ThrottledQuery<Omit<StoredNow, 'atMs'>>
  readonly #oldestDue: ThrottledQuery<JobView | null>
  /** Some of the jobs that completed last: their times, where other processes work. */
  readonly #completed: ThrottledQuery<readonly JobView[]>
  readonly #traffic: LocalTraffic
  readonly #presence: Pick<Presence, 'list'> | null
  readonly #alertsFiring: () => number
  readonly #limits: HealthLimits
  readonly #pointsMax: number
  readonly #points: HistoryPoint[] = []
  readonly #listeners = new Set<(sample: Sample) => void>()
  #overview: Overview | null = null
  readonly #reported = new ReportedWork()
  #before: StoredNow | null = null
  /** What this process had finished when the counts of the overview were taken. */
  #finishedAtCount = 0
  #lastStepMs: number
  #isClosed = false
  #cancelNext = (): void => {}
  #underWay: Promise<Overview> | null = null

  /** Use `startSampling`. */
  constructor({ engine, events }: SampledMill, options: SamplingOptions) {
    this.engine = engine
    this.#clock = options.clock ?? systemClock
    this.stepMs = parseDurationMs(options.every ?? '2s', 'every')
    this.#pointsMax = Math.ceil(parseDurationMs(options.keep ?? '15m', 'keep') / this.stepMs)
    this.#traffic = new LocalTraffic(events, this.#clock)
    const throttle = { clock: this.#clock }
    const count = async () => ({ counts: await engine.counts(), finished: this.#traffic.finished })
    this.#counts = new ThrottledQuery(count, throttle)
    this.#oldestDue = new ThrottledQuery(async () => engine.inspector?.oldestDue() ?? null, throttle)
    this.#completed = new ThrottledQuery(
      async () => engine.inspector?.list({ state: 'completed', limit: COMPLETED_MAX }) ?? [],
      throttle,
    )
    this.#presence = options.presence ?? null
    this.#alertsFiring = options.alertsFiring ?? (() => 0)
    this.#limits = options.health ?? {}
    this.#lastStepMs = this.#clock.monotonicMs()
    this.#plan()
  }

  /** The last overview; taken now if there is none yet. */
  async overview(): Promise<Overview> {
    if (this.#overview !== null) return this.#overview
    this.#underWay ??= this.#overviewNow().finally(() => {
      this.#underWay = null
    })
    return this.#underWay
  }

  /** Checks the engine and the workers now, with the last counts. Never rejects because of what it finds. */
  health(limits: HealthLimits = this.#limits): Promise<Health> {
    const { inspector } = this.engine
    const engine = {
      ping: () => this.engine.ping(),
      counts: () => this.counts(),
      ...(inspector !== undefined && { inspector: { oldestDue: () => this.oldestDue() } }),
    }
    const presence = this.#presence
    const workers = presence === null ? workersOf(this.engine, this.#clock) : { presence }
    return checkHealth({ engine }, { ...workers, ...limits, clock: this.#clock })
  }

  /** The last counts. */
  async counts(): Promise<Counts> {
    return (await this.#counts.read()).value.counts
  }

  /** The oldest due job when it was last looked for. */
  async oldestDue(): Promise<JobView | null> {
    return (await this.#oldestDue.read()).value
  }

  /** Points after `sinceMs`, oldest first. */
  points(sinceMs = 0): readonly HistoryPoint[] {
    return this.#points.filter(({ atMs }) => atMs > sinceMs)
  }

  /** Called after every step. Returns the unsubscriber. */
  subscribe(listener: (sample: Sample) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  close(): void {
    this.#isClosed = true
    this.#cancelNext()
    this.#traffic.close()
    this.#listeners.clear()
  }

  #plan(): void {
    if (this.#isClosed) return
    this.#cancelNext = this.#clock.after(this.stepMs, () => void this.#step())
  }

  /** An unreachable store leaves a gap in the charts, and the last overview with its time. */
  async #step(): Promise<void> {
    try {
      // Before the counts, which then have all that the beats tell of.
      const beats = await this.#beats()
      const overview = await this.#overviewNow()
      const completed = this.#isAlone(overview) ? [] : await this.#completedSince(this.#before?.atMs ?? overview.atMs)
      if (this.#isClosed) return
      const point = this.#point(overview, completed, beats)
      this.#points.push(point)
      if (this.#points.length > this.#pointsMax) this.#points.shift()
      for (const listener of this.#listeners) listener({ overview, point })
    } catch {
      this.#traffic.take(this.stepMs)
    } finally {
      this.#plan()
    }
  }

  async #overviewNow(): Promise<Overview> {
    const {
      value: { counts, finished },
      atMs: countedAtMs,
    } = await this.#counts.fresh()
    const [health, paused] = await Promise.all([this.health(), this.#paused()])
    this.#finishedAtCount = finished
    this.#overview = {
      atMs: this.#clock.nowMs(),
      countedAtMs,
      counts,
      paused,
      oldestWaitingMs: health.details.oldestWaitingJob,
      workers: health.details.activeWorkers,
      alertsFiring: this.#alertsFiring(),
      health: health.status,
      reasons: health.reasons,
    }
    return this.#overview
  }

  /** A store of pauses that does not answer leaves those that were known. */
  async #paused(): Promise<readonly string[]> {
    const pauses = pausesIn(this.engine)
    if (pauses === undefined) return []
    const found = await findWithin(this.#clock, 'the pauses', () => pauses.list())
    return found.ok ? found.value.map(({ type }) => type) : (this.#overview?.paused ?? [])
  }

  /** Their times are a convenience: a store that cannot list them leaves them out. */
  async #completedSince(sinceMs: number): Promise<readonly JobView[]> {
    const found = await this.#completed.fresh().catch(() => null)
    return found?.value.filter(({ completedAtMs }) => completedAtMs !== null && completedAtMs > sinceMs) ?? []
  }

  /** Null where the store keeps none, or does not answer. */
  async #beats(): Promise<readonly Beat[] | null> {
    const presence = presenceIn(this.engine)
    if (presence === undefined) return null
    const found = await findWithin(this.#clock, 'the workers', () => presence.list())
    return found.ok ? found.value : null
  }

  /** Whether all workers of the store are those of this process, whose own events then tell most. */
  #isAlone({ workers }: Overview): boolean {
    return this.#traffic.isLocal && workers <= this.#traffic.workers
  }

  #point(overview: Overview, completed: readonly JobView[], beats: readonly Beat[] | null): HistoryPoint {
    const { counts } = overview
    return {
      atMs: overview.atMs,
      ...this.#trafficSince(overview, completed, beats),
      ready: total(counts, 'ready'),
      delayed: total(counts, 'delayed'),
      inProgress: total(counts, 'inProgress'),
      dead: total(counts, 'dead'),
    }
  }

  #trafficSince(overview: Overview, completed: readonly JobView[], beats: readonly Beat[] | null): Traffic {
    const isAlone = this.#isAlone(overview)
    const nowMs = this.#clock.monotonicMs()
    const local = this.#traffic.take(Math.max(1, nowMs - this.#lastStepMs))
    this.#lastStepMs = nowMs
    const after = { counts: overview.counts, atMs: overview.countedAtMs, finished: this.#finishedAtCount }
    const before = this.#before ?? after
    this.#before = after
    const isCounted = before === after || after.atMs > before.atMs
    const reported =
      beats === null || !isCounted ? null : this.#reported.take(beats, after.counts, after.atMs - before.atMs)
    if (!isAlone)
      return {
        ...(completed.length === 0 ? local : timesOfJobs(completed)),
        ...ratesBetween(before, after, reported),
      }
    const { enqueuedPerSecond } = local
    const came = enqueuedBetween(before, after, after.finished - before.finished)
    return {
      ...local,
      enqueuedPerSecond: came === null ? enqueuedPerSecond || null : Math.max(came, enqueuedPerSecond ?? 0),
    }
  }
}
