/**
 * Presence: which workers live now, over all processes. Workers write it and health checks read it; no job depends on it.
 * It is kept in the records of the engine; a mill may also write it to another store.
 */
import type { Clock } from '../time/clock.ts'
import { decodeBeat, encodeBeat } from './beats.ts'
import type { Engine } from './engine.ts'
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
  /** How fast jobs age for it; left out: strict priority. */
  readonly ageingMs?: number
  /** Jobs of the beat's type whose handlers run now. */
  readonly running: number
  /** Attempts of the beat's type. Left out by earlier versions. */
  readonly ended?: EndedAttempts
  /** Those of them that have run longest, at most `JOBS_SHOWN_MAX`. */
  readonly jobs: readonly JobAtWork[]
}

/** A beat is written every few seconds by every worker: it must stay small. */
export const JOBS_SHOWN_MAX = 20

/** What one worker last said about one of its types. */
export interface Beat {
  readonly type: string
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
  /** A clean end: forgotten at once. Harmless for one that is not known. */
  gone(instance: string, types: readonly string[]): Promise<void>
  /** Those that live: one beat for each worker and type. */
  list(): Promise<readonly Beat[]>
}

/** How long a worker that went without a goodbye can be missed. */
export const SEEN_MS: number = EXPIRED_KEPT_MS

/** When a worker was last heard. */
export interface Seen {
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
}

/** Presence in an engine's records, one for each worker and type. */
export class RecordPresence implements RememberingPresence {
  readonly #records: Records

  constructor(records: Records) {
    this.#records = records
  }

  async beat(beats: readonly Beat[], ttlMs: number): Promise<void> {
    const records = beats.map((beat) => ({ name: nameOf(beat), body: encodeBeat(beat) }))
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
    return (await this.#read()).flatMap(({ beat: { type, instance, atMs }, leftMs }) =>
      leftMs >= -SEEN_MS ? [{ type, instance, atMs }] : [],
    )
  }

  async #read(): Promise<readonly { readonly beat: Beat; readonly leftMs: number }[]> {
    const records = await this.#records.list('worker')
    return records.flatMap(({ name, body, leftMs }) => {
      const beat = decodeBeat(ownerOf(name), body)
      return beat === null ? [] : [{ beat, leftMs: leftMs ?? 0 }]
    })
  }
}

/** Undefined where the engine keeps no records. */
export function presenceIn({ records }: { readonly records?: Records }): RememberingPresence | undefined {
  return records && new RecordPresence(records)
}

/** The workers of all processes, as far as anybody knows them. */
export type KnownWorkers = Pick<RememberingPresence, 'list' | 'seen'>

/** By their heartbeats, and by what the store knows itself, such as the members of a consumer group. Undefined where neither is there. */
export function knownWorkers(engine: Pick<Engine, 'records' | 'workers'>, clock: Clock): KnownWorkers | undefined {
  const presence = presenceIn(engine)
  if (engine.workers === undefined) return presence
  const members = async (): Promise<readonly Beat[]> => beatsOf((await engine.workers?.()) ?? [], clock.nowMs())
  return {
    list: async () => (await Promise.all([presence?.list() ?? [], members()])).flat(),
    seen: async () => (await Promise.all([presence?.seen() ?? [], members()])).flat(),
  }
}

function beatsOf(workers: readonly { readonly id: string; readonly types: readonly string[] }[], atMs: number): Beat[] {
  const known = { status: 'RUNNING', atMs, lastJobAtMs: null, lag: null, stoppingSinceMs: null } as const
  return workers.flatMap(({ id, types }) => types.map((type) => ({ ...known, type, instance: id })))
}

/** Neither a worker's id nor a type has a line break. */
function nameOf({ type, instance }: Pick<Beat, 'type' | 'instance'>): string {
  return `${instance}\n${type}`
}

function ownerOf(name: string): Pick<Beat, 'type' | 'instance'> {
  const at = name.lastIndexOf('\n')
  return { instance: name.slice(0, at), type: name.slice(at + 1) }
}
