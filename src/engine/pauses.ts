import { randomUUID } from 'node:crypto'
import type { Actor } from './dead-letters.ts'
import type { Engine } from './engine.ts'
import type { WithPresence } from './presence.ts'
import { bodyFields, type Records } from './records.ts'

export interface Pause extends Actor {
  readonly type: string
  readonly sinceMs: number
}

/** What workers are told by a record of the pauses, with the text that it has. */
export interface Told extends Pause {
  readonly body: string
}

/** Where pauses are kept: in the records of an engine, or beside it with the heartbeats of its workers. */
export interface PauseStore {
  /** False if it was paused already; the first pause stays as it was. */
  pause(type: string, by: Actor): Promise<boolean>
  /** False if it was not paused. */
  resume(type: string): Promise<boolean>
  /** By type. */
  list(): Promise<readonly Pause[]>
  /**
   * Those of types, those of workers that were asked to stop, by `stopName`, and changed limits, by `limitName`. Absent
   * where workers cannot be told.
   */
  readonly all?: () => Promise<readonly Told[]>
  /** Present where every change is heard within a second. Returns the unsubscriber. */
  readonly onChange?: (listener: () => void) => () => void
}

/**
 * Types of which no job is started. Their jobs stay queued and may be enqueued as before; those that run go on to their
 * end. A pause survives every process where the engine survives one, and a worker obeys it within a second.
 */
export class Pauses implements PauseStore {
  readonly #records: Records
  readonly onChange?: (listener: () => void) => () => void

  constructor(records: Records) {
    this.#records = records
    if (records.onChange !== undefined) this.onChange = (listener) => records.onChange?.(listener) ?? (() => {})
  }

  async pause(type: string, { who, reason }: Actor): Promise<boolean> {
    const record = { name: type, revision: randomUUID(), body: JSON.stringify({ who, reason }) }
    return (await this.#records.save('pause', record, null)) !== null
  }

  async resume(type: string): Promise<boolean> {
    return (await this.#records.remove('pause', [type])) > 0
  }

  async list(): Promise<readonly Pause[]> {
    return (await this.all()).filter(isOfType).map(({ body: _, ...pause }) => pause)
  }

  async all(): Promise<readonly Told[]> {
    return (await this.#records.list('pause')).map(({ name, body, savedAtMs }) => readTold(name, body, savedAtMs))
  }
}

/**
 * What a worker that is asked to stop is paused by: no type has a line break. With the time of its start, because a later
 * worker with its id was not asked.
 */
export function stopName(worker: string, startedAtMs: number): string {
  return `${worker}\n${startedAtMs}`
}

/** Whether it is the pause of a type. */
export function isOfType({ type }: Pick<Pause, 'type'>): boolean {
  return !type.includes('\n')
}

export function readTold(type: string, body: string, sinceMs: number): Told {
  const { who, reason } = bodyFields(body)
  return { type, who: textOf(who), reason: textOf(reason), sinceMs, body }
}

/** Undefined where the engine keeps no records, and nothing beside it keeps pauses. */
export function pausesIn({ records, presence }: Pick<Engine, 'records'> & WithPresence): PauseStore | undefined {
  return records === undefined ? presence?.pauses : new Pauses(records)
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
