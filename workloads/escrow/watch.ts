import type { TopicLag } from '../../src/engine/open.ts'
import type { RememberingPresence } from '../../src/engine/presence.ts'
import type { PendingLetters } from '../../src/observe/lag.ts'
import { type Found, findWithin } from '../../src/observe/observed-mill.ts'
import { presentWorkers } from '../../src/observe/workers.ts'
import { type Clock, systemClock } from '../../src/time/clock.ts'
import type { WatchedWorker } from './conditions.ts'

/** One reading of all sources. A source that cannot be read does not affect the others. */
export interface Reading {
  readonly atMs: number
  readonly workers: Found<readonly WatchedWorker[]>
  readonly lags: Found<readonly TopicLag[]>
  readonly pending: Found<readonly PendingLetters[]>
}

export interface WatchSources {
  readonly presence: Pick<RememberingPresence, 'list' | 'seen'>
  /** How many records each group is behind on each topic. */
  readonly lags: () => Promise<readonly TopicLag[]>
  /** Unresolved dead letters. */
  readonly pending: () => Promise<readonly PendingLetters[]>
  /** How many partitions or keys a worker holds for a retry; default: none. */
  readonly retrying?: (worker: string, instance: string) => number
  readonly clock?: Clock
}

/**
 * Reads workers, lags and dead letters, each for at most a second. Pass the result of `read` to `evaluateAlarms` and
 * `watchHealth`.
 *
 * @example
 * const watch = new Watch({ presence, lags: async () => [], pending: async () => [] })
 * for (const alarm of evaluateAlarms(await watch.read(), { lagLimits, isFinancial })) page(alarm)
 */
export class Watch {
  readonly #sources: WatchSources
  readonly #clock: Clock
  /** When each worker was first seen; forgotten with the worker. */
  #knownSince = new Map<string, number>()

  constructor(sources: WatchSources) {
    this.#sources = sources
    this.#clock = sources.clock ?? systemClock
  }

  async read(): Promise<Reading> {
    const [workers, lags, pending] = await Promise.all([
      findWithin(this.#clock, 'the presence', () => this.#workers()),
      findWithin(this.#clock, 'the lags', this.#sources.lags),
      findWithin(this.#clock, 'the dead letters', this.#sources.pending),
    ])
    return { atMs: this.#clock.nowMs(), workers, lags, pending }
  }

  async #workers(): Promise<readonly WatchedWorker[]> {
    const { presence, retrying } = this.#sources
    const present = await presentWorkers(presence)
    const nowMs = this.#clock.nowMs()
    const watched = present.map((one) => {
      const knownSinceMs = this.#knownSince.get(`${one.worker}\n${one.instance}`) ?? nowMs
      return { ...one, knownSinceMs, retrying: retrying?.(one.worker, one.instance) ?? 0 }
    })
    this.#knownSince = new Map(watched.map((one) => [`${one.worker}\n${one.instance}`, one.knownSinceMs]))
    return watched
  }
}

/** One partition of a topic, as one group has committed it. */
export interface PartitionOffsets {
  readonly begin: bigint
  readonly end: bigint
  /** Null when the group has never committed. */
  readonly committed: bigint | null
}

/**
 * The records that a group has yet to read, over all partitions of a topic. Without a commit that is every record;
 * records deleted by retention do not count.
 *
 * @example
 * consumerLag([{ begin: 0n, end: 7n, committed: 2n }]) // 5
 */
export function consumerLag(partitions: readonly PartitionOffsets[]): number {
  return partitions.reduce((sum, { begin, end, committed }) => {
    const next = committed === null || committed < begin ? begin : committed
    return sum + Math.max(0, Number(end - next))
  }, 0)
}
