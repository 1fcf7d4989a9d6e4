import type { Beat, Presence } from '../engine/presence.ts'
import { OptionError } from '../errors.ts'
import type { MillEvents } from '../events.ts'
import type { Log } from '../job/definition.ts'
import { errorText } from '../job/error-record.ts'
import { type OptionNames, refuseUnknown } from '../job/known-options.ts'
import { type Clock, systemClock } from '../time/clock.ts'
import { type Duration, parseDurationMs } from '../time/duration.ts'
import { within } from '../time/wait.ts'
import { silentLog } from './log.ts'
import type { ObservedMill } from './observed-mill.ts'
import { ANSWER_MS } from './observed-mill.ts'

export interface PresenceOptions {
  readonly presence: Presence
  /** How many jobs wait for workers of a type, read at each beat; default: unknown. */
  readonly lag?: (type: string) => number | Promise<number>
  /** One line when the presence becomes unreachable, and one when it is back. */
  readonly log?: Log
  /** Between two beats; default: 10s. */
  readonly every?: Duration
  /** How long a beat is valid while the worker runs; default: 30s. */
  readonly ttl?: Duration
  /** The same while the worker stops; default: 60s. */
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
 * Sends heartbeats of a mill's workers to another store than the engine's: when they start, every 10 s, while they stop,
 * and when they are gone. Attach before they start. A presence that fails or hangs never affects them. Returns the
 * detacher, which signs off the remaining workers and resolves when that is done, or after a second.
 *
 * @example
 * const detach = attachPresence(mill, { presence: new MemoryPresence(), log })
 */
export function attachPresence(mill: Pick<ObservedMill, 'events'>, options: PresenceOptions): () => Promise<void> {
  refuseUnknown(options, PRESENCE_NAMES, 'attachPresence')
  const announcer = new Announcer(options)
  const detach = mill.events.attach({
    'worker.started': (event) => announcer.started(event),
    'worker.stopping': ({ worker }) => announcer.stopping(worker),
    'worker.stopped': ({ worker }) => announcer.stopped(worker),
    'job.settled': (event) => announcer.settled(event),
  })
  return async () => {
    detach()
    await announcer.close()
  }
}

interface Announced {
  readonly worker: string
  readonly name: string | undefined
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
  #isUnreachable = false

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
      `a beat is valid for ${shortest} ms and sent every ${this.#everyMs} ms; raise 'ttl' and 'stoppingTtl' above 'every'`,
    )
  }

  started({ worker, name, types }: MillEvents['worker.started']): void {
    const one = { worker, name, types, lastJobAtMs: new Map(), stoppingSinceMs: null, cancelNext: () => {} }
    this.#workers.set(worker, one)
    this.#repeat(one)
  }

  /** A released job was not processed. */
  settled({ worker, job, outcome }: MillEvents['job.settled']): void {
    if (outcome.kind !== 'release') this.#workers.get(worker)?.lastJobAtMs.set(job.type, this.#clock.nowMs())
  }

  /** Repeated until the worker has stopped, however long that takes. */
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
    this.#follow(this.#send(() => this.#presence.gone(worker, one.name === undefined ? one.types : [one.name])))
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
    // The worker may have signed off meanwhile.
    if (this.#workers.get(one.worker) !== one) return
    const ttlMs = one.stoppingSinceMs === null ? this.#ttlMs : this.#stoppingTtlMs
    await this.#send(() => this.#presence.beat(this.#beatsOf(one, lags), ttlMs))
  }

  #beatsOf({ worker, name, types, lastJobAtMs, stoppingSinceMs }: Announced, lags: Lags): readonly Beat[] {
    const atMs = this.#clock.nowMs()
    return types.map((type) => ({
      type,
      ...(name !== undefined && { name }),
      instance: worker,
      status: stoppingSinceMs === null ? 'RUNNING' : 'SHUTTING_DOWN',
      atMs,
      lastJobAtMs: lastJobAtMs.get(type) ?? null,
      lag: lags.get(type) ?? null,
      stoppingSinceMs,
    }))
  }

  /** A lag that cannot be read is unknown. */
  async #lags(types: readonly string[], lag: (type: string) => number | Promise<number>): Promise<Lags> {
    const lags = new Map<string, number>()
    const ask = async (type: string): Promise<void> => {
      try {
        lags.set(type, await within(this.#clock, ANSWER_MS, `the lag of '${type}'`, () => lag(type)))
      } catch (error) {
        this.#log.debug('The lag is unknown', { job_type: type, error: errorText(error) })
      }
    }
    await Promise.all(types.map(ask))
    return lags
  }

  /** Never rejects. An outage is logged once, not at every beat. */
  async #send(message: () => Promise<void>): Promise<void> {
    try {
      await within(this.#clock, ANSWER_MS, 'the presence', message)
      if (this.#isUnreachable) this.#log.info('Presence is reachable again')
      this.#isUnreachable = false
    } catch (error) {
      if (!this.#isUnreachable)
        this.#log.warn('Presence is unreachable; workers go on without it', { error: errorText(error) })
      this.#isUnreachable = true
    }
  }

  #follow(sending: Promise<void>): void {
    this.#underWay.add(sending)
    void sending.finally(() => this.#underWay.delete(sending))
  }
}
