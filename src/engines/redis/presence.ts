import { decodeBeat, encodeBeat } from '../../engine/beats.ts'
import { type Beat, type PresenceStore, SEEN_MS, type Seen, seenOf } from '../../engine/presence.ts'
import { OptionError } from '../../errors.ts'
import { Connection } from './connection.ts'
import { clientFor, connectionOptions } from './driver.ts'
import { parseUrl } from './options.ts'
import { RedisPauses } from './presence-pauses.ts'

/** The part of an ioredis client that we use: one of your own fits, of whatever version. */
export interface RedisCaller {
  call(command: string, ...args: (string | number)[]): Promise<unknown>
}

export interface RedisPresenceOptions {
  /** Prefix of every key, for programs that share a Redis and must not see each other's workers. Default: none. */
  readonly prefix?: string
}

/** Every key that was ever beaten, by its last beat: a list of workers must not walk all keys of a Redis full of jobs. */
const INDEX = 'millrace:workers'
/** What a connection of our own gets to connect and to answer. */
const REDIS_MS = 1_000

/**
 * Presence in Redis, for a mill on whatever engine. Given a URL it has a connection of its own, which `close` ends; a
 * client of yours stays open. A Redis that is down is no error here: beats fail until it is back.
 *
 * @example
 * await using presence = await openPresence('redis://127.0.0.1:6379')
 * attachPresence(mill, { presence })
 */
export async function openPresence(
  redis: string | RedisCaller,
  options: RedisPresenceOptions = {},
): Promise<RedisPresence> {
  const prefix = options.prefix ?? ''
  if (typeof redis !== 'string') return new RedisPresence(redis, prefix, async () => {})
  const { client, close } = await connect(redis)
  return new RedisPresence(client, prefix, close)
}

/** Use `openPresence`. */
export class RedisPresence implements PresenceStore, AsyncDisposable {
  readonly #redis: RedisCaller
  readonly #prefix: string
  readonly #close: () => Promise<void>
  readonly pauses: RedisPauses

  constructor(redis: RedisCaller, prefix: string, close: () => Promise<void>) {
    this.pauses = new RedisPauses(redis, prefix)
    this.#redis = redis
    this.#prefix = prefix
    this.#close = close
  }

  async beat(beats: readonly Beat[], ttlMs: number): Promise<void> {
    if (beats.length === 0) return
    const newestMs = Math.max(...beats.map(({ atMs }) => atMs))
    await Promise.all([
      ...beats.map((beat) => this.#redis.call('SET', this.#key(beat), encodeBeat(beat), 'PX', ttlMs)),
      this.#redis.call(
        'ZADD',
        this.#index,
        ...beats.map(seenOf).flatMap(({ type, instance, atMs }) => [atMs, heartbeatKey(type, instance)]),
      ),
      this.#redis.call('ZREMRANGEBYSCORE', this.#index, '-inf', `(${newestMs - SEEN_MS}`),
    ])
  }

  async gone(instance: string, types: readonly string[]): Promise<void> {
    const keys = types.map((type) => heartbeatKey(type, instance))
    if (keys.length === 0) return
    // One key each: in a cluster they live on several nodes.
    const deleted = keys.map((key) => this.#redis.call('DEL', this.#prefix + key))
    await Promise.all([...deleted, this.#redis.call('ZREM', this.#index, ...keys)])
  }

  async list(): Promise<readonly Beat[]> {
    const keys = strings(await this.#redis.call('ZRANGE', this.#index, 0, -1))
    const beats = await Promise.all(keys.map((key) => this.#read(key)))
    return beats.filter((beat) => beat !== null)
  }

  async seen(): Promise<readonly Seen[]> {
    const answer: unknown = await this.#redis.call('ZRANGE', this.#index, 0, -1, 'WITHSCORES')
    // Pairs one after the other, or each in an array of its own: that is the protocol's version.
    const flat: readonly unknown[] = Array.isArray(answer) ? answer.flat() : []
    return flat.flatMap((key, index) => {
      const owner = index % 2 === 0 && typeof key === 'string' ? ownerOf(key) : null
      return owner === null ? [] : [{ ...owner, atMs: Number(flat[index + 1]) }]
    })
  }

  async #read(key: string): Promise<Beat | null> {
    const value = await this.#redis.call('GET', this.#prefix + key)
    return typeof value === 'string' ? readHeartbeat(key, value) : null
  }

  /** Beats under way arrive first. */
  async close(): Promise<void> {
    await this.#close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  get #index(): string {
    return this.#prefix + INDEX
  }

  #key(beat: Beat): string {
    const { type, instance } = seenOf(beat)
    return this.#prefix + heartbeatKey(type, instance)
  }
}

function strings(answer: unknown): readonly string[] {
  return Array.isArray(answer) ? answer.filter((one) => typeof one === 'string') : []
}

async function connect(url: string): Promise<{ client: RedisCaller; close: () => Promise<void> }> {
  checkUrl(url)
  const { address } = parseUrl(url)
  const settings = connectionOptions({ name: 'millrace-presence', connectMs: REDIS_MS, answerMs: REDIS_MS })
  const client = await clientFor(address, 'To keep presence in Redis: npm install ioredis')
  const connection = new Connection(client.duplicate(settings), REDIS_MS)
  connection.start()
  return {
    client: { call: (command, ...args) => connection.send(command, args) },
    async close() {
      // Answered after all that was sent before; refused at once without a connection.
      await connection.send('PING', [], 0).catch(() => {})
      connection.close()
    },
  }
}

/** The engine's URL serves as well. Its `prefix` is that of the engine's keys. */
function checkUrl(url: string): void {
  if (URL.canParse(url) && /^rediss?:$/.test(new URL(url).protocol)) return
  throw new OptionError(`the presence needs a URL such as redis://127.0.0.1:6379, or an ioredis client of your own`)
}

/** The keys of heartbeats in Redis, which other programs of the escrow workers read and write too. */
/** `worker:{type}:{instance_id}`. A colon in a type is written %3A, so that a key can be read back. */
export function heartbeatKey(type: string, instance: string): string {
  return `worker:${type.replaceAll(':', '%3A')}:${instance}`
}

/** Whose key it is; null for what is no such key. */
export function ownerOf(key: string): { readonly type: string; readonly instance: string } | null {
  const [, type = '', instance = ''] = /^worker:([^:]+):(.+)$/s.exec(key) ?? []
  return type === '' ? null : { type: type.replaceAll('%3A', ':'), instance }
}

/** Null for what is no heartbeat. */
export function readHeartbeat(key: string, value: string): Beat | null {
  const owner = ownerOf(key)
  return owner === null ? null : decodeBeat(owner, value)
}
