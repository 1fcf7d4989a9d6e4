/** The part of ioredis that we use, by its shape: a client of the user's own fits, of version 5 or 6. */
import { EngineError } from '../../errors.ts'
import type { RedisAddress } from './options.ts'

export type RedisValue = string | number

export interface RedisClient {
  /** `ready` when commands are sent at once; all others mean that they are not. */
  readonly status: string
  readonly options: { readonly keyPrefix?: string | undefined }
  readonly isCluster?: boolean
  connect(): Promise<void>
  /** With `true` it connects again at once; without, it has ended. */
  disconnect(reconnect?: boolean): void
  duplicate(options: ConnectionOptions): RedisClient
  call(command: string, args: readonly RedisValue[]): Promise<unknown>
  on(event: 'ready' | 'close' | 'end', listener: () => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'message', listener: (channel: string, message: string) => void): unknown
}

/** What our own connections are opened with. The names are ioredis's. */
export interface ConnectionOptions {
  readonly connectionName: string
  readonly lazyConnect: true
  readonly protocol: 2
  readonly keyPrefix: ''
  readonly enableOfflineQueue: false
  readonly enableReadyCheck: true
  readonly autoResendUnfulfilledCommands: false
  readonly autoResubscribe: false
  readonly maxRetriesPerRequest: 0
  readonly maxLoadingRetryTime: number
  readonly connectTimeout: number
  readonly disconnectTimeout: number
  readonly keepAlive: number
  readonly disableClientInfo: true
  readonly commandTimeout: number | undefined
  readonly socketTimeout: number | undefined
  readonly retryStrategy: (times: number) => number
  readonly reconnectOnError: (error: Error) => boolean
}

const RETRY_MS_MIN = 50
const RETRY_MS_MAX = 2_000
/** A peer that is gone without a goodbye is noticed by the kernel. */
const KEEP_ALIVE_MS = 10_000
const LOADING_MS = 250

/**
 * Nothing is ever sent twice or kept for later by the driver: a command that finds no connection is refused, and one
 * whose connection breaks is rejected, so that we alone decide what is safe to repeat. `maxRetriesPerRequest` must be 0
 * for that: with `autoResendUnfulfilledCommands` off and any other value, ioredis forgets such a command for ever.
 *
 * RESP2, because BullMQ's Lua and its readers were written for its answers; RESP3 changes the form of some of them, and
 * its HELLO is unknown to some proxies.
 */
export function connectionOptions({
  name,
  connectMs,
  answerMs,
}: {
  readonly name: string
  readonly connectMs: number
  /** Null where the server may take its time: a connection that waits for work. */
  readonly answerMs: number | null
}): ConnectionOptions {
  return {
    connectionName: name,
    lazyConnect: true,
    protocol: 2,
    keyPrefix: '',
    enableOfflineQueue: false,
    enableReadyCheck: true,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    maxLoadingRetryTime: LOADING_MS,
    connectTimeout: connectMs,
    disconnectTimeout: 0,
    keepAlive: KEEP_ALIVE_MS,
    disableClientInfo: true,
    commandTimeout: answerMs ?? undefined,
    socketTimeout: answerMs ?? undefined,
    retryStrategy: (times) =>
      Math.min(RETRY_MS_MIN * 2 ** Math.min(times - 1, 10), RETRY_MS_MAX) * (0.5 + Math.random()),
    // A server that has become a replica: the next connection may lead to the new primary.
    reconnectOnError: (error) => error.message.includes('READONLY'),
  }
}

/** A client that is not connected yet; whoever needs connections takes duplicates of it. */
export async function clientFor(address: RedisAddress): Promise<RedisClient> {
  const { Redis } = await import('ioredis').catch((error: unknown) => {
    throw new EngineError('ERR_MODULE_MISSING', 'To use Redis: npm install bullmq@6 ioredis', { cause: error })
  })
  const { host, port, db, username, password, tls } = address
  return new Redis({
    host,
    port,
    db,
    // Both kinds of addresses, whichever the name has.
    family: 0,
    lazyConnect: true,
    // A user without a password says so by an empty one.
    ...(username !== null && { username, password: password ?? '' }),
    ...(password !== null && { password }),
    ...(tls && { tls: {} }),
  }) as unknown as RedisClient
}

const METHODS = ['connect', 'disconnect', 'duplicate', 'call', 'defineCommand', 'on']

/** Also true of a Cluster of ioredis, which is refused with its reason later. */
export function isClient(handle: object): handle is RedisClient {
  return (
    METHODS.every((name) => typeof Reflect.get(handle, name) === 'function') &&
    typeof Reflect.get(handle, 'status') === 'string'
  )
}
