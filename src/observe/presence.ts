import type { Beat, Presence } from '../engine/presence.ts'
import { OptionError } from '../errors.ts'
import type { Events, MillEvents } from '../events.ts'
import type { Log } from '../job/definition.ts'
import { type OptionNames, refuseUnknown } from '../job/known-options.ts'
import { type Clock, systemClock } from '../time/clock.ts'
import { type Duration, parseDurationMs } from '../time/duration.ts'
import { ANSWER_MS, answerWithin } from './deadline.ts'
import { errorText } from './error-text.ts'
import { silentLog } from './log.ts'

export interface PresenceOptions {
  readonly presence: Presence
  /** How many jobs wait for workers of a type; asked at each beat. Unknown unless told. */
  readonly lag?: (type: string) => number | Promise<number>
  /** Told once when the presence cannot be reached, and once when it can again. */
  readonly log?: Log
  /** Between two beats; 10 s unless told. */
  readonly every?: Duration
  /** How long a beat holds while the worker runs; 30 s unless told. */
  readonly ttl?: Duration
  /** And while it stops; 60 s unless told. */
  readonly stoppingTtl?: Duration
  readonly clock?: Clock
}

const PRESENCE_NAMES: OptionNames<PresenceOptions> = {
  presence: true,
  lag: true,
  log: true,
  every: true,
  ttl: true,
  stoppingTtl: true,
  clock: true,
}

/**
 * Lets the workers of a mill say that they live, in a store besides the engine's own: when they start, every 10 s, while
 * they stop, and goodbye. Attach before they start. A presence that fails or hangs never disturbs them. Returns the
 * detacher, which says goodbye for those still here and resolves when that has arrived, or after a second.
 *
 * @example
 * const detach = attachPresence(mill, { presence: new MemoryPresence(), log })
 */
export function attachPresence(mill: { readonly events: Events }, options: PresenceOptions): () => Promise<void> {
  refuseUnknown(options, PRESENCE_NAMES, 'attachPresence')
  const announcer = new Announcer(options)
  const { events } = mill
  const detachers = [
    events.on('worker.started', (event) => announcer.started(event)),
    events.on('worker.stopping', ({ worker }) => announcer.stopping(worker)),
    events.on('worker.stopped', ({ worker }) => announcer.stopped(worker)),
    events.on('job.settled', (event) => announcer.settled(event)),
  ]
  return async () => {
    for (const detach of detachers) detach()
    await announcer.close()
  }
}

interface Announced {
  readonly worker: string
  readonly types: readonly string[]
  readonly lastJobAtMs: Map<string, number>
  stoppingSinceMs: number | null
  cancelNext: () => void
}

type Lags = ReadonlyMap<string, number>
const UNKNOWN: Lags = new Map()

class Announcer {
  readonly #presence: Presence
  readonly #lag: PresenceOptions['lag']
  readonly #log: Log
  readonly #clock: Clock
  readonly #everyMs: number
  readonly #ttlMs: number
  readonly #stoppingTtlMs: number
  readonly #workers = new Map<string, Announced>()
  readonly #underWay = new Set<Promise<void>>()
  #isTroubled = false

  constructor(options: PresenceOptions) {
    this.#presence = options.presence
    this.#lag = options.lag
    this.#log = options.log ?? silentLog
    this.#clock = options.clock ?? systemClock
    this.#everyMs = parseDurationMs(options.every ?? '10s', 'every')
    this.#ttlMs = parseDurationMs(options.ttl ?? '30s', 'ttl')
    this.#stoppingTtlMs = parseDurationMs(options.stoppingTtl ?? '60s', 'stoppingTtl')
    if (this.#everyMs < 1) throw new OptionError(`'every' is ${this.#everyMs} ms; give at least 1 ms`)
    const shortest = Math.min(this.#ttlMs, this.#stoppingTtlMs)
    if (shortest > this.#everyMs) return
    throw new OptionError(
      `a beat holds for ${shortest} ms and comes every ${this.#everyMs} ms; raise 'ttl' and 'stoppingTtl' above 'every'`,
    )
  }

  started({ worker, types }: MillEvents['worker.started']): void {
    const one = { worker, types, lastJobAtMs: new Map(), stoppingSinceMs: null, cancelNext: () => {} }
    this.#workers.set(worker, one)
    this.#repeat(one)
  }

  /** D08: an attempt that ended, well or badly; a job given back was not processed. */
  settled({ worker, job, outcome }: MillEvents['job.settled']): void {
    if (outcome.kind !== 'release') this.#workers.get(worker)?.lastJobAtMs.set(job.type, this.#clock.nowMs())
  }

  /** X155: said again until the worker has stopped, however long that takes. */
  stopping(worker: string): void {
    const one = this.#workers.get(worker)
    if (one === undefined) return
    one.stoppingSinceMs = this.#clock.nowMs()
    one.cancelNext()
    this.#repeat(one)
  }

  stopped(worker: string): void {
    const one = this.#workers.get(worker)
    if (one === undefined) return
    this.#workers.delete(worker)
    one.cancelNext()
    this.#follow(this.#tell(() => this.#presence.gone(worker, one.types)))
  }

  async close(): Promise<void> {
    for (const worker of [...this.#workers.keys()]) this.stopped(worker)
    await Promise.all(this.#underWay)
  }

  #repeat(one: Announced): void {
    one.cancelNext = this.#clock.after(this.#everyMs, () => this.#repeat(one))
    this.#follow(this.#beat(one))
  }

  async #beat(one: Announced): Promise<void> {
    const lags = this.#lag === undefined ? UNKNOWN : await this.#lags(one.types, this.#lag)
    // It may have said goodbye meanwhile, and must not rise again.
    if (this.#workers.get(one.worker) !== one) return
    const ttlMs = one.stoppingSinceMs === null ? this.#ttlMs : this.#stoppingTtlMs
    await this.#tell(() => this.#presence.beat(this.#beatsOf(one, lags), ttlMs))
  }

  #beatsOf({ worker, types, lastJobAtMs, stoppingSinceMs }: Announced, lags: Lags): readonly Beat[] {
    const atMs = this.#clock.nowMs()
    return types.map((type) => ({
      type,
      instance: worker,
      status: stoppingSinceMs === null ? 'RUNNING' : 'SHUTTING_DOWN',
      atMs,
      lastJobAtMs: lastJobAtMs.get(type) ?? null,
      lag: lags.get(type) ?? null,
      stoppingSinceMs,
    }))
  }

  /** A lag that cannot be had is unknown: the worker lives all the same. */
  async #lags(types: readonly string[], lag: (type: string) => number | Promise<number>): Promise<Lags> {
    const lags = new Map<string, number>()
    const ask = async (type: string): Promise<void> => {
      try {
        lags.set(type, await answerWithin(this.#clock, ANSWER_MS, `the lag of '${type}'`, () => lag(type)))
      } catch (error) {
        this.#log.debug('The lag is unknown', { job_type: type, error: errorText(error) })
      }
    }
    await Promise.all(types.map(ask))
    return lags
  }

  /** Never rejects. Trouble is logged once, not at every beat. */
  async #tell(say: () => Promise<void>): Promise<void> {
    try {
      await answerWithin(this.#clock, ANSWER_MS, 'telling the presence', say)
      if (this.#isTroubled) this.#log.info('Presence can be told again')
      this.#isTroubled = false
    } catch (error) {
      if (!this.#isTroubled)
        this.#log.warn('Presence cannot be told; workers go on unseen', { error: errorText(error) })
      this.#isTroubled = true
    }
  }

  #follow(told: Promise<void>): void {
    this.#underWay.add(told)
    void told.finally(() => this.#underWay.delete(told))
  }
}
