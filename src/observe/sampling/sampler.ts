import type { Counts, Engine } from '../../engine/engine.ts'
import type { Presence } from '../../engine/presence.ts'
import type { Events } from '../../events.ts'
import type { JobView } from '../../job/job.ts'
import { type Clock, systemClock } from '../../time/clock.ts'
import { type Duration, parseDurationMs } from '../../time/duration.ts'
import { checkHealth } from '../health/check.ts'
import type { Health, HealthWord } from '../health/health.ts'
import { type Found, Paced } from './paced.ts'
import { LocalTraffic, type Traffic, total, trafficBetween } from './traffic.ts'

/** One look at the whole. */
export interface Overview {
  readonly atMs: number
  /** When the counts were taken: large stores are counted less often than they are looked at. */
  readonly countedAtMs: number
  readonly counts: Counts
  readonly paused: readonly string[]
  /** For how long the job that has been due longest waits; null when none does. */
  readonly oldestWaitingMs: number | null
  readonly workers: number
  readonly alertsFiring: number
  readonly health: HealthWord
}

/** What one step of time brought. What this process cannot know is null. */
export interface HistoryPoint extends Traffic {
  readonly atMs: number
  readonly ready: number
  readonly delayed: number
  readonly inProgress: number
  readonly dead: number
}

export interface SamplingOptions {
  /** Between two looks; 2 s unless told. */
  readonly every?: Duration
  /** How far back points are kept; 15 min unless told. */
  readonly keep?: Duration
  /** Who is at work, where the engine does not keep that itself. */
  readonly presence?: Pick<Presence, 'list'>
  /** How many alerts fire now. */
  readonly alertsFiring?: () => number
  readonly clock?: Clock
}

export interface Sample {
  readonly overview: Overview
  readonly point: HistoryPoint
}

/**
 * Looks at a mill again and again, for pages and charts: one sampler serves any number of readers, and costs the same
 * whether there are none or a hundred. Attach before workers start; close it before the mill.
 *
 * @example
 * const sampler = startSampling(mill)
 * const { counts, health } = await sampler.overview()
 */
export function startSampling(mill: Sampled, options: SamplingOptions = {}): Sampler {
  return new Sampler(mill, options)
}

/** A mill, or whatever has its engine and its events. */
export interface Sampled {
  readonly engine: Pick<Engine, 'ping' | 'counts' | 'inspector' | 'presence' | 'pauses'>
  readonly events: Events
}

const NOBODY: Pick<Presence, 'list'> = { list: async () => [] }

export class Sampler {
  readonly stepMs: number
  readonly #engine: Sampled['engine']
  readonly #clock: Clock
  readonly #counts: Paced<Counts>
  readonly #oldestDue: Paced<JobView | null>
  readonly #traffic: LocalTraffic
  readonly #presence: Pick<Presence, 'list'> | null
  readonly #alertsFiring: () => number
  readonly #pointsMax: number
  readonly #points: HistoryPoint[] = []
  readonly #listeners = new Set<(sample: Sample) => void>()
  #overview: Overview | null = null
  #before: Found<Counts> | null = null
  #lastStepMs: number
  #isClosed = false
  #cancelNext = (): void => {}
  #underWay: Promise<Overview> | null = null

  /** Use `startSampling`. */
  constructor({ engine, events }: Sampled, options: SamplingOptions) {
    this.#engine = engine
    this.#clock = options.clock ?? systemClock
    this.stepMs = parseDurationMs(options.every ?? '2s', 'every')
    this.#pointsMax = Math.ceil(parseDurationMs(options.keep ?? '15m', 'keep') / this.stepMs)
    this.#counts = new Paced(() => engine.counts(), this.#clock)
    this.#oldestDue = new Paced(async () => engine.inspector?.oldestDue() ?? null, this.#clock)
    this.#traffic = new LocalTraffic(events, this.#clock)
    this.#presence = options.presence ?? engine.presence ?? null
    this.#alertsFiring = options.alertsFiring ?? (() => 0)
    this.#lastStepMs = this.#clock.monotonicMs()
    this.#plan()
  }

  /** The last one; taken now when there is none yet. */
  async overview(): Promise<Overview> {
    if (this.#overview !== null) return this.#overview
    this.#underWay ??= this.#look().finally(() => {
      this.#underWay = null
    })
    return this.#underWay
  }

  /** Asks the engine and the workers now; counts are those last taken. It never rejects for what it finds. */
  health(): Promise<Health> {
    const engine = {
      ping: () => this.#engine.ping(),
      counts: () => this.counts(),
      inspector: { oldestDue: async () => (await this.#oldestDue.read()).value },
    }
    // Where nobody can say that it lives, nobody is missed.
    const workers = this.#presence === null ? { presence: NOBODY, minWorkers: 0 } : { presence: this.#presence }
    return checkHealth({ engine }, { ...workers, clock: this.#clock })
  }

  /** The counts as they were last taken. */
  async counts(): Promise<Counts> {
    return (await this.#counts.read()).value
  }

  /** Oldest first, those after `sinceMs`. */
  points(sinceMs = 0): readonly HistoryPoint[] {
    return this.#points.filter(({ atMs }) => atMs > sinceMs)
  }

  /** Told after every step. Returns the unsubscriber. */
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

  /** A store that is away leaves a gap in the charts, and the last overview with its time. */
  async #step(): Promise<void> {
    try {
      const overview = await this.#look()
      if (this.#isClosed) return
      const point = this.#point(overview)
      this.#points.push(point)
      if (this.#points.length > this.#pointsMax) this.#points.shift()
      for (const listener of this.#listeners) listener({ overview, point })
    } catch {
      this.#traffic.take(this.stepMs)
    } finally {
      this.#plan()
    }
  }

  async #look(): Promise<Overview> {
    const { value: counts, atMs: countedAtMs } = await this.#counts.renewed()
    const [health, pauses] = await Promise.all([this.health(), this.#engine.pauses?.list() ?? []])
    this.#overview = {
      atMs: this.#clock.nowMs(),
      countedAtMs,
      counts,
      paused: pauses.map(({ type }) => type),
      oldestWaitingMs: health.details.oldestWaitingJob,
      workers: health.details.activeWorkers,
      alertsFiring: this.#alertsFiring(),
      health: health.status,
    }
    return this.#overview
  }

  #point({ counts, countedAtMs, atMs }: Overview): HistoryPoint {
    const nowMs = this.#clock.monotonicMs()
    const { isLocal } = this.#traffic
    const local = this.#traffic.take(Math.max(1, nowMs - this.#lastStepMs))
    this.#lastStepMs = nowMs
    const before = this.#before
    this.#before = { value: counts, atMs: countedAtMs }
    return {
      atMs,
      ...(isLocal
        ? local
        : trafficBetween(before?.value ?? counts, counts, countedAtMs - (before?.atMs ?? countedAtMs))),
      ready: total(counts, 'ready'),
      delayed: total(counts, 'delayed'),
      inProgress: total(counts, 'inProgress'),
      dead: total(counts, 'dead'),
    }
  }
}
