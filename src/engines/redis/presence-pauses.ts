import type { Actor } from '../../engine/dead-letters.ts'
import { isOfType, type Pause, type PauseStore, readTold, type Told } from '../../engine/pauses.ts'
import { bodyFields } from '../../engine/records.ts'
import type { RedisCaller } from './presence.ts'

/** A hash with a field for each type that is paused. */
const PAUSES_KEY = 'millrace:pauses'

/** Pauses beside the heartbeats of workers whose engine keeps none. They have no end but `resume`. */
export class RedisPauses implements PauseStore {
  readonly #redis: RedisCaller
  readonly #key: string

  constructor(redis: RedisCaller, prefix: string) {
    this.#redis = redis
    this.#key = prefix + PAUSES_KEY
  }

  async pause(type: string, { who, reason }: Actor): Promise<boolean> {
    const body = JSON.stringify({ who, reason, sinceMs: await this.#nowMs() })
    return Number(await this.#redis.call('HSETNX', this.#key, type, body)) === 1
  }

  async resume(type: string): Promise<boolean> {
    return Number(await this.#redis.call('HDEL', this.#key, type)) === 1
  }

  async list(): Promise<readonly Pause[]> {
    return (await this.all()).filter(isOfType).map(({ body: _, ...pause }) => pause)
  }

  async all(): Promise<readonly Told[]> {
    const answer: unknown = await this.#redis.call('HGETALL', this.#key)
    // Fields and values one after the other, or an object: that is the client's choice.
    const flat = Array.isArray(answer)
      ? answer.map(String)
      : Object.entries(answer ?? {})
          .flat()
          .map(String)
    const pauses = flat.flatMap((type, index) => {
      if (index % 2 === 1) return []
      const body = flat[index + 1] ?? ''
      const { sinceMs } = bodyFields(body)
      return [readTold(type, body, typeof sinceMs === 'number' ? sinceMs : 0)]
    })
    return pauses.sort((one, other) => (one.type < other.type ? -1 : 1))
  }

  /** By the clock of the server, which all who look share. */
  async #nowMs(): Promise<number> {
    const answer: unknown = await this.#redis.call('TIME')
    const [seconds, micros] = Array.isArray(answer) ? answer.map(Number) : []
    return Math.round((seconds ?? 0) * 1_000 + (micros ?? 0) / 1_000)
  }
}
