import type { Counts } from '../../engine/engine.ts'
import { pausesIn } from '../../engine/pauses.ts'
import type { Presence } from '../../engine/presence.ts'
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
import type { ObservedMill } from '../observed-mill.ts'
import { ThrottledQuery } from './throttled-query.ts'
import { LocalTraffic, type Stored, type Traffic, total, trafficBetween } from './traffic.ts'

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
  readonly ready: number
  readonly delayed: number
  readonly inProgress: number
  readonly dead: number
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

/** Enough for percentiles; a step of two seconds may have thousands. */
const COMPLETED_MAX = 200

export class Sampler {
  readonly stepMs: number
  readonly #engine: SampledMill['engine']
  readonly #clock: Clock
  readonly #counts: ThrottledQuery<Counts>
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
  #before: Stored | null = null
  #lastStepMs: number
  #isClosed = false
  #cancelNext = (): void => {}
  #underWay: Promise<Overview> | null = null

  /** Use `startSampling`. */
  constructor({ engine, events }: SampledMill, options: SamplingOptions) {
    this.#engine = engine
    this.#clock = options.clock ?? systemClock
    this.stepMs = parseDurationMs(options.every ?? '2s', 'every')
    this.#pointsMax = Math.ceil(parseDurationMs(options.keep ?? '15m', 'keep') / this.stepMs)
    this.#counts = new ThrottledQuery(() => engine.counts(), this.#clock)
    this.#oldestDue = new ThrottledQuery(async () => engine.inspector?.oldestDue() ?? null, this.#clock)
    this.#completed = new ThrottledQuery(
      async () => engine.inspector?.list({ state: 'completed', limit: COMPLETED_MAX }) ?? [],
      this.#clock,
    )
    this.#traffic = new LocalTraffic(events, this.#clock)
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
  health(): Promise<Health> {
    const { inspector } = this.#engine
    const engine = {
      ping: () => this.#engine.ping(),
      counts: () => this.counts(),
      ...(inspector !== undefined && { inspector: { oldestDue: async () => (await this.#oldestDue.read()).value } }),
    }
    const presence = this.#presence
    const workers = presence === null ? workersOf(this.#engine, this.#clock) : { presence }
    return checkHealth({ engine }, { ...this.#limits, ...workers, clock: this.#clock })
  }

  /** The last counts. */
  async counts(): Promise<Counts> {
    return (await this.#counts.read()).value
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
      const overview = await this.#overviewNow()
      const completed = this.#traffic.isLocal ? [] : await this.#completedSince(this.#before?.atMs ?? overview.atMs)
      if (this.#isClosed) return
      const point = this.#point(overview, completed)
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
    const { value: counts, atMs: countedAtMs } = await this.#counts.fresh()
    const [health, pauses] = await Promise.all([this.health(), pausesIn(this.#engine)?.list() ?? []])
    this.#overview = {
      atMs: this.#clock.nowMs(),
      countedAtMs,
      counts,
      paused: pauses.map(({ type }) => type),
      oldestWaitingMs: health.details.oldestWaitingJob,
      workers: health.details.activeWorkers,
      alertsFiring: this.#alertsFiring(),
      health: health.status,
      reasons: health.reasons,
    }
    return this.#overview
  }

  /** Their times are a convenience: a store that cannot list them leaves them out. */
  async #completedSince(sinceMs: number): Promise<readonly JobView[]> {
    const found = await this.#completed.fresh().catch(() => null)
    return found?.value.filter(({ completedAtMs }) => completedAtMs !== null && completedAtMs > sinceMs) ?? []
  }

  #point({ counts, countedAtMs, atMs }: Overview, completed: readonly JobView[]): HistoryPoint {
    const nowMs = this.#clock.monotonicMs()
    const { isLocal } = this.#traffic
    const local = this.#traffic.take(Math.max(1, nowMs - this.#lastStepMs))
    this.#lastStepMs = nowMs
    const after = { counts, atMs: countedAtMs }
    const before = this.#before ?? after
    this.#before = after
    return {
      atMs,
      ...(isLocal ? local : trafficBetween(before, after, completed)),
      ready: total(counts, 'ready'),
      delayed: total(counts, 'delayed'),
      inProgress: total(counts, 'inProgress'),
      dead: total(counts, 'dead'),
    }
  }
}
