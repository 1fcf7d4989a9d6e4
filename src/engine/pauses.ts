import { randomUUID } from 'node:crypto'
import type { Actor } from './dead-letters.ts'
import { bodyFields, type Records } from './records.ts'

export interface Pause extends Actor {
  readonly type: string
  readonly sinceMs: number
}

/**
 * Types of which no job is started. Their jobs stay queued and may be enqueued as before; those that run go on to their
 * end. A pause survives every process where the engine survives one, and a worker obeys it within a second.
 */
export class Pauses {
  readonly #records: Records
  /** Present where every change is heard at once. Returns the unsubscriber. */
  readonly onChange?: (listener: () => void) => () => void

  constructor(records: Records) {
    this.#records = records
    if (records.onChange !== undefined) this.onChange = (listener) => records.onChange?.(listener) ?? (() => {})
  }

  /** False if it was paused already; the first pause stays as it was. */
  async pause(type: string, { who, reason }: Actor): Promise<boolean> {
    const record = { name: type, revision: randomUUID(), body: JSON.stringify({ who, reason }) }
    return (await this.#records.save('pause', record, null)) !== null
  }

  /** False if it was not paused. */
  async resume(type: string): Promise<boolean> {
    return (await this.#records.remove('pause', [type])) > 0
  }

  /** By type. */
  async list(): Promise<readonly Pause[]> {
    return (await this.#records.list('pause')).map(({ name, body, savedAtMs }) => {
      const { who, reason } = bodyFields(body)
      return { type: name, who: textOf(who), reason: textOf(reason), sinceMs: savedAtMs }
    })
  }
}

/** Undefined where the engine keeps no records. */
export function pausesIn({ records }: { readonly records?: Records }): Pauses | undefined {
  return records && new Pauses(records)
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
