/**
 * Presence: which workers live now, over all processes. Workers write it and health checks read it; no job depends on it.
 * It is kept in the records of the engine, or in another store beside it.
 */
import type { SharedSlots } from '../job/slots.ts'
import type { Clock } from '../time/clock.ts'
import { decodeBeat, encodeBeat } from './beats.ts'
import type { Engine, KnownWorker } from './engine.ts'
import { type PauseStore, Pauses } from './pauses.ts'
import { EXPIRED_KEPT_MS, type Records } from './records.ts'

/** A job whose handler runs now. */
export interface JobAtWork {
  readonly id: string
  readonly attempt: number
  readonly startedAtMs: number
}

/** Attempts that have ended since the worker started, but for those that were given back. */
export interface EndedAttempts {
  readonly completed: number
  /** Whether tried again or not. */
  readonly failed: number
}

/** What a worker of ours says of itself. A beat of another program has none of it. */
export interface AtWork {
  readonly host: string
  readonly pid: number
  /** Of its process, and of no other: numbers of processes are used again. */
  readonly process?: string
  readonly startedAtMs: number
  /** Handlers at once at most, over all its types. */
  readonly concurrency: number
  /** Of the beat's type, over all workers. */
  readonly slots?: SharedSlots
  /** How fast jobs age for it; left out: strict priority. */
  readonly ageingMs?: number
  /** Jobs of the beat's type whose handlers run now. */
  readonly running: number
  /** Until when the beat's type was paused, as far as is known: while it is, the time of the beat. Left out if it never was. */
  readonly pausedUntilMs?: number
  /** Attempts of the beat's type. Left out by earlier versions. */
  readonly ended?: EndedAttempts
  /** Those of them per second, between the beat before and this one. Left out in the first. */
  readonly perSecond?: number
  /** Of this package. The next four are of the process, and left out by earlier versions. */
  readonly version?: string
  readonly memoryBytes?: number
  /** How late its event loop was at worst since the beat before. */
  readonly loopDelayMs?: number
  /** Whether it stops when it is asked to by `drainWorker`. */
  readonly drains?: boolean
  /** Those of them that have run longest, at most `JOBS_SHOWN_MAX`. */
  readonly jobs: readonly JobAtWork[]
}

/** A beat is written every few seconds by every worker: it must stay small. */
export const JOBS_SHOWN_MAX = 20

/** What one worker last said about one of its types. */
export interface Beat {
  readonly type: string
  /** What heartbeats call the worker instead of its type: several kinds of workers may run one type. */
  readonly name?: string
  /** The worker's id. */
  readonly instance: string
  readonly status: 'RUNNING' | 'SHUTTING_DOWN'
  readonly atMs: number
  /** When it last ended an attempt of a job of this type; null before the first. */
  readonly lastJobAtMs: number | null
  /** Jobs that wait for workers of this type; null where nobody counts them. */
  readonly lag: number | null
  /** Null while it runs. */
  readonly stoppingSinceMs: number | null
  readonly work?: AtWork
}

export interface Presence {
  /** Each is forgotten after `ttlMs`, unless it is said again. */
  beat(beats: readonly Beat[], ttlMs: number): Promise<void>
  /** A clean end: forgotten at once. A worker with a name gives that for its type. Harmless for one that is not known. */
  gone(instance: string, types: readonly string[]): Promise<void>
  /** Those that live: one beat for each worker and type. */
  list(): Promise<readonly Beat[]>
}

/** How long a worker that went without a goodbye can be missed. */
export const SEEN_MS: number = EXPIRED_KEPT_MS

/** When a worker was last heard. */
export interface Seen {
  /** Its name where it has one. */
  readonly type: string
  readonly instance: string
  readonly atMs: number
}

/**
 * A presence that also remembers workers that vanished without saying goodbye, for a day after their last beat expired, so
 * that they can be reported as missing.
 */
export interface RememberingPresence extends Presence {
  /** The workers that live, and those that should. */
  seen(): Promise<readonly Seen[]>
  /** Pauses of engines that keep none themselves. They hold for every worker that has this presence, whatever its engine. */
  readonly pauses?: PauseStore
}

/** A presence beside an engine. */
export interface PresenceStore extends RememberingPresence {
  close(): Promise<void>
}

/** What a mill adds to its engine. No engine implements it: one that keeps heartbeats keeps them in its `records`. */
export interface WithPresence {
  readonly presence?: RememberingPresence
}

/** The engine with a presence beside it. `close` ends what was opened for it, after the engine. */
export function withPresence(
  engine: Engine,
  presence: RememberingPresence,
  close: () => Promise<void> = async () => {},
): Engine & WithPresence {
  const own: WithPresence & Pick<Engine, 'close'> = {
    presence,
    close: () => engine.close().finally(close),
  }
  // Not of the engine itself: what a frozen object has may not be answered otherwise.
  return new Proxy<Engine & WithPresence>(Object.create(engine), {
    get(_target, property) {
      if (Object.hasOwn(own, property)) return Reflect.get(own, property)
      const value: unknown = Reflect.get(engine, property)
      return typeof value === 'function' ? value.bind(engine) : value
    },
  })
}

/** Presence in an engine's records, one for each worker and type. */
export class RecordPresence implements RememberingPresence {
  readonly pauses: PauseStore
  readonly #records: Records

  constructor(records: Records) {
    this.#records = records
    this.pauses = new Pauses(records)
  }

  async beat(beats: readonly Beat[], ttlMs: number): Promise<void> {
    const records = beats.map((beat) => ({ name: nameOf(seenOf(beat)), body: encodeBeat(beat) }))
    await this.#records.put('worker', records, ttlMs)
  }

  async gone(instance: string, types: readonly string[]): Promise<void> {
    await this.#records.remove(
      'worker',
      types.map((type) => nameOf({ type, instance })),
    )
  }

  async list(): Promise<readonly Beat[]> {
    return (await this.#read()).flatMap(({ beat, leftMs }) => (leftMs > 0 ? [beat] : []))
  }

  async seen(): Promise<readonly Seen[]> {
    return (await this.#read()).flatMap(({ beat, leftMs }) => (leftMs >= -SEEN_MS ? [seenOf(beat)] : []))
  }

  async #read(): Promise<readonly { readonly beat: Beat; readonly leftMs: number }[]> {
    const records = await this.#records.list('worker')
    return records.flatMap(({ name, body, leftMs }) => {
      const beat = decodeBeat(ownerOf(name), body)
      return beat === null ? [] : [{ beat, leftMs: leftMs ?? 0 }]
    })
  }
}

/** How a worker is known after its last beat has expired. */
export function seenOf({ type, name = type, instance, atMs }: Beat): Seen {
  return { type: name, instance, atMs }
}

/** Undefined where there is none beside the engine and it keeps no records. */
export function presenceIn({
  presence,
  records,
}: WithPresence & Pick<Engine, 'records'>): RememberingPresence | undefined {
  return presence ?? (records && new RecordPresence(records))
}

/** The workers of all processes, as far as anybody knows them. */
export type KnownWorkers = Pick<RememberingPresence, 'list' | 'seen'>

/** Of an engine that keeps no heartbeats and has none beside it. */
export const NO_PRESENCE: KnownWorkers = Object.freeze({ list: async () => [], seen: async () => [] })

/** What is read of an engine to know its workers. */
export type WorkersRead = Pick<Engine, 'records' | 'workers'> & WithPresence

/**
 * By their heartbeats, and by what the store knows itself, such as the members of a consumer group. With a presence beside
 * the engine by their heartbeats alone: a member would be a second worker. Undefined where nothing is known.
 */
export function knownWorkers(engine: WorkersRead, clock: Pick<Clock, 'nowMs'>): KnownWorkers | undefined {
  const presence = presenceIn(engine)
  if (engine.workers === undefined || engine.presence !== undefined) return presence
  const members = async (): Promise<readonly Beat[]> => beatsOf((await engine.workers?.()) ?? [], clock.nowMs())
  return {
    list: async () => (await Promise.all([presence?.list() ?? [], members()])).flat(),
    seen: async () => (await Promise.all([presence?.seen() ?? [], members()])).flat(),
  }
}

/** By type, where the store tells how far its workers are behind. */
export function lagsOf(workers: readonly KnownWorker[]): Readonly<Record<string, number>> {
  return Object.assign({}, ...workers.map(({ lags }) => lags))
}

/** One that the store knows by itself runs, and no more is known of it. */
export function beatsOf(workers: readonly KnownWorker[], atMs: number): Beat[] {
  const known = { status: 'RUNNING', atMs, lastJobAtMs: null, stoppingSinceMs: null } as const
  return workers.flatMap(({ id, types, lags }) =>
    types.map((type) => ({ ...known, type, instance: id, lag: lags?.[type] ?? null })),
  )
}

/** Neither a worker's id nor a type has a line break. */
function nameOf({ type, instance }: Pick<Beat, 'type' | 'instance'>): string {
  return `${instance}\n${type}`
}

function ownerOf(name: string): Pick<Beat, 'type' | 'instance'> {
  const at = name.lastIndexOf('\n')
  return { instance: name.slice(0, at), type: name.slice(at + 1) }
}
