/** The part of ioredis that we use, by its shape: any client of version 5 or 6 fits. */
import { rereading, servernameOf, tlsOptions } from '../../engine/secure-url.ts'
import { EngineError } from '../../errors.ts'
import type { RedisAddress, SentinelAddress } from './options.ts'

export type RedisValue = string | number

export interface RedisClient {
  /** `ready` when commands are sent at once. */
  readonly status: string
  readonly options: { readonly keyPrefix?: string | undefined }
  readonly isCluster?: boolean
  connect(): Promise<void>
  /** With `true` it reconnects at once; without, it has ended. */
  disconnect(reconnect?: boolean): void
  duplicate(options: ConnectionOptions): RedisClient
  /** We send no buffers; without them in the type, the client of ioredis would not fit it. */
  call(command: string, args: readonly (RedisValue | Buffer)[]): Promise<unknown>
  on(event: 'connect' | 'ready' | 'close' | 'end', listener: () => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'message', listener: (channel: string, message: string) => void): unknown
}

/** ioredis options of every connection. */
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
/** The kernel notices a peer that vanished. */
const KEEP_ALIVE_MS = 10_000
const LOADING_MS = 250

/**
 * The driver never sends a command twice or queues it: a command without a connection is refused, and a command whose
 * connection breaks is rejected, so only we decide what is safe to repeat. `maxRetriesPerRequest` must be 0 for that: with
 * any other value and `autoResendUnfulfilledCommands` off, such a command never settles.
 *
 * RESP2, because BullMQ's Lua and our readers expect its answers; RESP3 changes some of them, and some proxies do not know
 * HELLO.
 */
export function connectionOptions({
  name,
  connectMs,
  answerMs,
}: {
  readonly name: string
  readonly connectMs: number
  /** Null where a connection blocks while it waits for work, or is watched by us. */
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
    // The server became a replica, or no longer has the slot: the next connection may lead to the one that has.
    reconnectOnError: (error) => /READONLY|^MOVED\b/.test(error.message),
  }
}

/** A client that never connects itself; connections are duplicates of it. */
export async function clientFor(
  address: RedisAddress,
  install = 'To use Redis: npm install bullmq@6 ioredis',
): Promise<RedisClient> {
  const { Redis } = await import('ioredis').catch((error: unknown) => {
    throw new EngineError('ERR_MODULE_MISSING', install, { cause: error })
  })
  const { host, port, db, username, tls, sentinel } = address
  const secret = address.password
  const password = typeof secret === 'function' ? secret() : secret
  // Sentinels tell the address of the primary, and not its name.
  const servername = tls === null || sentinel !== undefined ? (tls?.servername ?? null) : servernameOf(tls, host)
  const client = new Redis({
    ...(sentinel === undefined ? { host, port } : sentinelOptions(sentinel, tls !== null)),
    db,
    // IPv4 or IPv6, whichever the name has.
    family: 0,
    lazyConnect: true,
    // ioredis wants an empty password for a user without one.
    ...(username !== null && { username, password: password ?? '' }),
    ...(password !== null && { password }),
    ...(tls !== null && { tls: Object.assign(tlsOptions(tls), servername !== null && { servername }) }),
  }) as unknown as RedisClient
  return typeof secret === 'function' ? withPassword(client, rereading(secret)) : client
}

function sentinelOptions({ sentinels, name, username, password }: SentinelAddress, isTls: boolean) {
  return {
    sentinels: [...sentinels],
    name,
    ...(username !== null && { sentinelUsername: username }),
    ...(password !== null && { sentinelPassword: password() }),
    // The certificate of the primary is that of the sentinels too: both are verified the same way.
    ...(isTls && { enableTLSForSentinelMode: true }),
  }
}

/** The driver looks at its options for every connection, and copies their values for a duplicate. */
function withPassword(client: RedisClient, get: () => string): RedisClient {
  const duplicate = client.duplicate.bind(client)
  client.duplicate = (options) => {
    const copy = duplicate(options)
    Object.defineProperty(copy.options, 'password', { get, enumerable: true })
    return copy
  }
  return client
}

const METHODS = ['connect', 'disconnect', 'duplicate', 'call', 'defineCommand', 'on']

/** Also true for an ioredis Cluster. */
export function isClient(handle: object): handle is RedisClient {
  return (
    METHODS.every((name) => typeof Reflect.get(handle, name) === 'function') &&
    typeof Reflect.get(handle, 'status') === 'string'
  )
}
