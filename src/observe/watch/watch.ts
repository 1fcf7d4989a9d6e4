import type { RememberingPresence } from '../../engine/presence.ts'
import { type Clock, systemClock } from '../../time/clock.ts'
import { type Found, findWithin } from '../found.ts'
import type { WatchedWorker } from './conditions.ts'

export interface GroupLag {
  readonly group: string
  readonly topic: string
  readonly lag: number
}

export interface PendingLetters {
  /** The topic of the dead letters, `….dlq`. */
  readonly topic: string
  readonly count: number
}

export type { Found } from '../found.ts'

/** One look at everything. A source that is away takes nothing from the others. */
export interface Reading {
  readonly atMs: number
  readonly workers: Found<readonly WatchedWorker[]>
  readonly lags: Found<readonly GroupLag[]>
  readonly pending: Found<readonly PendingLetters[]>
}

export interface WatchSources {
  readonly presence: Pick<RememberingPresence, 'list' | 'seen'>
  /** How far each group is behind on each topic. */
  readonly lags: () => Promise<readonly GroupLag[]>
  /** Dead letters that nobody has resolved. */
  readonly pending: () => Promise<readonly PendingLetters[]>
  /** How many partitions or keys a worker holds for a retry; none unless told. */
  readonly retrying?: (worker: string, instance: string) => number
  readonly clock?: Clock
}

/**
 * Looks at workers, lags and dead letters, each for a second at most. Give what `read` answers to `evaluateAlarms`, to
 * `watchHealth` and to `attachWatchMetrics`.
 *
 * @example
 * const watch = new Watch({ presence, lags: async () => [], pending: async () => [] })
 * for (const alarm of evaluateAlarms(await watch.read(), { lagLimits, isFinancial })) page(alarm)
 */
export class Watch {
  readonly #sources: WatchSources
  readonly #clock: Clock
  /** When each worker was first met; forgotten with it. */
  #known = new Map<string, number>()

  constructor(sources: WatchSources) {
    this.#sources = sources
    this.#clock = sources.clock ?? systemClock
  }

  async read(): Promise<Reading> {
    const { lags, pending } = this.#sources
    const [workers, groups, letters] = await Promise.all([
      this.#ask('the presence', () => this.#workers()),
      this.#ask('the lags', lags),
      this.#ask('the dead letters', pending),
    ])
    return { atMs: this.#clock.nowMs(), workers, lags: groups, pending: letters }
  }

  async #workers(): Promise<readonly WatchedWorker[]> {
    const { presence, retrying } = this.#sources
    const [beats, seen] = await Promise.all([presence.list(), presence.seen()])
    const nowMs = this.#clock.nowMs()
    const living = new Map(beats.map((beat) => [keyOf(beat.type, beat.instance), beat]))
    // One that began to beat between the two answers lives all the same.
    const everyone = new Map([...seen, ...beats].map((one) => [keyOf(one.type, one.instance), one]))
    const known = new Map([...everyone.keys()].map((key) => [key, this.#known.get(key) ?? nowMs]))
    this.#known = known
    return [...everyone].map(([key, { type, instance, atMs }]) => ({
      worker: type,
      instance,
      seenAtMs: atMs,
      beat: living.get(key) ?? null,
      knownSinceMs: known.get(key) ?? nowMs,
      retrying: retrying?.(type, instance) ?? 0,
    }))
  }

  #ask<T>(what: string, ask: () => Promise<T>): Promise<Found<T>> {
    return findWithin(this.#clock, what, ask)
  }
}

function keyOf(type: string, instance: string): string {
  return `${type}\n${instance}`
}
