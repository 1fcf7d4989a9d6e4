import { ClosedError, EngineError } from '../../errors.ts'
import { backgroundClock, type Clock, systemClock } from '../../time/clock.ts'
import { within } from '../../time/wait.ts'
import { Connection } from './connection.ts'
import { type ConnectionOptions, clientFor, connectionOptions, type RedisClient, type RedisValue } from './driver.ts'
import { isScriptMissing, toEngineError, toOpenError } from './faults.ts'
import { type Keys, keysOf } from './keys.ts'
import { isPrefix, type RedisAddress, type RedisOptions } from './options.ts'
import type { Script } from './scripts.ts'
import { BlockingConnection, type Listener, Subscriber } from './wakeups.ts'

/** Where connections come from: an address, a client of the user, whose settings are copied, or a slot of a cluster. */
export type Source = { readonly address: RedisAddress } | { readonly client: RedisClient } | SlotSource

export interface SlotSource {
  /** A connection that leads to the node that has the slot, also after the slot has moved. */
  readonly connectionTo: (options: ConnectionOptions) => RedisClient
}

/** `connect` reports a missing server within five seconds, whatever the timeout. */
const OPEN_MS_MAX = 4_500
/** Of the time that an answer may take: Redis must give up waiting for replicas before we give up waiting for it. */
const WAIT_SHARE = 0.8

export interface DatabaseSettings {
  readonly source: Source
  readonly clock: Clock
  readonly options: Required<RedisOptions>
}

/**
 * The server as the rest of the engine sees it. All errors are coded. A call without a connection waits for one at most
 * `answerMs` and is refused with ERR_STORAGE_OPEN; a call whose answer is lost rejects with ERR_STORAGE_FAILED: unknown
 * whether it happened. A client of the user is neither used nor closed; only its settings are.
 */
export class RedisDatabase {
  readonly keys: Keys
  readonly #clock: Clock
  readonly #source: Source
  readonly #answerMs: number
  readonly #replicas: number
  readonly #blocking = new Set<BlockingConnection>()
  #template: RedisClient | null = null
  #link: Connection | null = null
  #subscriber: Subscriber | null = null
  #closed = false

  constructor({ source, clock, options }: DatabaseSettings) {
    if (!isPrefix(options.prefix))
      throw new EngineError('ERR_ENGINE_URL', `'${options.prefix}' is not a valid key prefix`)
    this.keys = keysOf(options.prefix)
    this.#clock = clock
    this.#source = source
    this.#answerMs = options.answerMs
    this.#replicas = options.replicas
  }

  /** The time passed to scripts: empty where the server's clock decides (I11). */
  get now(): string {
    return this.#clock === systemClock || this.#clock === backgroundClock ? '' : String(this.#clock.nowMs())
  }

  /** False while calls have to wait for a connection. */
  get isReady(): boolean {
    return this.#link?.isReady ?? false
  }

  /** Connects, and refuses a server that would lose jobs, or that `admit` refuses. Rejects within five seconds. */
  async reach(admit: (info: Info, isCluster: boolean) => void = assertUsable): Promise<void> {
    const untilMs = systemClock.monotonicMs() + OPEN_MS_MAX
    try {
      if (!('connectionTo' in this.#source)) {
        this.#template ??= 'address' in this.#source ? await clientFor(this.#source.address) : this.#source.client
        assertSingle(this.#template)
      }
      this.#link ??= new Connection(this.#connection('millrace', null), this.#answerMs, this.#answerMs)
      await this.#link.connect(Math.min(OPEN_MS_MAX, this.#answerMs))
      const left = Math.max(1, untilMs - systemClock.monotonicMs())
      admit(await answered(left, this.info()), 'connectionTo' in this.#source)
    } catch (error) {
      this.close()
      throw toOpenError(error)
    }
  }

  /** Runs a script with the set of types as its only key and the time as its first argument. */
  async run(script: Script, args: readonly RedisValue[]): Promise<unknown> {
    const link = this.#opened()
    const values = [1, this.keys.types, this.now, ...args]
    try {
      return await link.send('evalsha', [script.sha, ...values])
    } catch (error) {
      // A restarted server has forgotten its scripts; nothing ran.
      if (isScriptMissing(error)) return this.#load(script, values)
      throw toEngineError(error, script.name, script.lua)
    }
  }

  async #load(script: Script, values: readonly RedisValue[]): Promise<unknown> {
    try {
      return await this.#opened().send('eval', [script.lua, ...values])
    } catch (error) {
      throw toEngineError(error, script.name, script.lua)
    }
  }

  /**
   * Like `run`, for what must not be lost with the primary: resolves when as many replicas have it as the options ask for.
   * Replicas acknowledge per connection, so a connection that was lost in between leaves it unknown. A script that has done
   * nothing answers null.
   */
  async runKept(script: Script, args: readonly RedisValue[]): Promise<unknown> {
    const answer = await this.run(script, args)
    if (this.#replicas === 0 || answer === null) return answer
    const epoch = this.#opened().epoch
    const reached = Number(await this.call('wait', this.#replicas, Math.ceil(this.#answerMs * WAIT_SHARE)))
    if (reached >= this.#replicas && this.#opened().epoch === epoch) return answer
    throw new EngineError(
      'ERR_STORAGE_FAILED',
      `Redis: ${script.name}: stored, but only ${reached} of ${this.#replicas} replicas confirmed it; a failover may undo it: check the replicas, and repeat the call with a key`,
    )
  }

  /** Any other command that does not block. */
  async call(command: string, ...args: readonly RedisValue[]): Promise<unknown> {
    try {
      return await this.#opened().send(command, args)
    } catch (error) {
      throw toEngineError(error, command)
    }
  }

  async info(): Promise<Info> {
    return parseInfo(String(await this.call('info')))
  }

  async ping(): Promise<void> {
    await this.call('ping')
  }

  async serverNowMs(): Promise<number> {
    const answer = await this.call('time')
    const [seconds, micros] = Array.isArray(answer) ? answer : []
    return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000)
  }

  /** A connection that may block; the caller closes it. Connects with the first wait. */
  blockingConnection(): BlockingConnection {
    this.#opened()
    const link = new Connection(this.#connection('millrace:wait', null), this.#answerMs)
    const connection = new BlockingConnection(link, this.#answerMs, () => this.#blocking.delete(connection))
    this.#blocking.add(connection)
    return connection
  }

  /** Returns the function that stops listening. */
  listen(channel: string, listener: Listener): () => void {
    this.#opened()
    this.#subscriber ??= new Subscriber(this.#connection('millrace:listen', this.#answerMs), this.#answerMs)
    return this.#subscriber.listen(channel, listener)
  }

  #connection(name: string, answerMs: number | null): RedisClient {
    const options = connectionOptions({ name, connectMs: Math.min(OPEN_MS_MAX, this.#answerMs), answerMs })
    if ('connectionTo' in this.#source) return this.#source.connectionTo(options)
    if (this.#template === null) throw new ClosedError('this Redis engine')
    return this.#template.duplicate(options)
  }

  #opened(): Connection {
    if (this.#link === null || this.#closed) throw new ClosedError('this Redis engine')
    return this.#link
  }

  /** Idempotent. Cuts all connections: calls on their way reject. */
  close(): void {
    this.#closed = true
    for (const connection of [...this.#blocking]) connection.close()
    this.#subscriber?.close()
    this.#link?.close()
    // Ours was never connected; a client of the user stays theirs.
    if ('address' in this.#source) this.#template?.disconnect()
  }
}

function answered<Value>(ms: number, answer: Promise<Value>): Promise<Value> {
  const late = (): Error =>
    new EngineError('ERR_STORAGE_OPEN', `Redis did not answer within ${Math.round(ms)} ms; check the server`)
  return within(systemClock, ms, late, () => answer)
}

function assertSingle(client: RedisClient): void {
  if (client.isCluster === true) {
    throw new EngineError(
      'ERR_ENGINE_URL',
      'this client is a Cluster; pass it to open(), or to RedisClusterEngine.connect',
    )
  }
  if ((client.options.keyPrefix ?? '') !== '') {
    throw new EngineError(
      'ERR_ENGINE_URL',
      `this client has the keyPrefix '${client.options.keyPrefix}', which Lua scripts do not see; leave it out and give ?prefix= in a URL`,
    )
  }
}

/** The fields of `INFO`. */
export type Info = ReadonlyMap<string, string>

export function parseInfo(text: string): Info {
  const lines = text.split('\r\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]))
}

/** BullMQ 6 recommends this version, and it has every command that Millrace uses. */
export const VERSION_MIN = '6.2.0'

export function isOlder(version: string, than: string): boolean {
  const [left, right] = [version, than].map((text) => text.split('.').map(Number))
  for (const [at, wanted] of (right ?? []).entries()) {
    const found = left?.[at] ?? 0
    if (found !== wanted) return found < wanted
  }
  return false
}

export const SET_POLICY = 'CONFIG SET maxmemory-policy noeviction'

/** Throws, with advice, if jobs would not be safe on this server or BullMQ's scripts would not run. */
export function assertUsable(info: Info, isCluster = false): void {
  const version = info.get('redis_version') ?? ''
  if (version !== '' && isOlder(version, VERSION_MIN)) {
    throw new EngineError(
      'ERR_STORAGE_OPEN',
      `Redis ${version} is too old; upgrade the server to ${VERSION_MIN} or later, which BullMQ recommends too`,
    )
  }
  const isNode = info.get('redis_mode') === 'cluster' || info.get('cluster_enabled') === '1'
  if (isNode !== isCluster) {
    throw new EngineError(
      'ERR_STORAGE_OPEN',
      isNode
        ? `this Redis is a node of a cluster; write redis+cluster://host:port (rediss+cluster: for TLS)`
        : `this Redis is no node of a cluster; write redis: or rediss:`,
    )
  }
  if (info.get('redis_mode') === 'sentinel') {
    throw new EngineError(
      'ERR_STORAGE_OPEN',
      `this is a Sentinel, which keeps no jobs; write redis+sentinel://host:port?name=<the primary's name> (rediss+sentinel: for TLS), or pass an ioredis client with 'sentinels' to open()`,
    )
  }
  if (info.get('role') === 'slave') {
    throw new EngineError(
      'ERR_STORAGE_READONLY',
      `this Redis is a replica of ${info.get('master_host')}:${info.get('master_port')}; give the address of the primary`,
    )
  }
  const policy = info.get('maxmemory_policy') ?? 'noeviction'
  if (policy !== 'noeviction') {
    throw new EngineError(
      'ERR_STORAGE_OPEN',
      `this Redis may throw away jobs when its memory is full (maxmemory-policy is '${policy}'); run: redis-cli ${SET_POLICY} (and put 'maxmemory-policy noeviction' into redis.conf, or set it with your provider)`,
    )
  }
}
