import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { findProgram } from './apt.ts'
import type { Certificates } from './certificates.ts'

export interface RedisServer {
  /** Without a prefix, such as `redis://127.0.0.1:40123`. */
  readonly url: string
  /** Of the engines, where it is another. */
  readonly engineUrl?: string
  /** Where it does TLS. */
  readonly certificates?: Certificates
}

/** A server that one test has for itself, and may do anything to. */
export interface OwnRedis extends RedisServer {
  readonly port: number
  /** Ends it in an orderly way: what is to be written is written first. The port then refuses connections. */
  stop(): Promise<void>
  /** Ends it without a goodbye. */
  kill(): Promise<void>
  /** Starts it again on the same port, with the data it had written, or as an empty one. */
  start(data?: 'kept' | 'gone'): Promise<void>
  /** Ends it for good and removes its data. A process that ends without it does the same. */
  end(): Promise<void>
}

export interface RedisSettings {
  /** Whether writes go to an append-only file, and how often that is flushed to the disk. Off unless said. */
  readonly aof?: 'off' | 'everysec' | 'always'
  /** In bytes. No limit unless said. */
  readonly maxmemory?: number
  /** `noeviction` unless said. */
  readonly eviction?: 'noeviction' | 'allkeys-lru' | 'volatile-lru' | 'allkeys-random'
  /** Any further ones, as in redis.conf: `{ requirepass: 'x' }`. */
  readonly settings?: Readonly<Record<string, string>>
}

const KEEPER = fileURLToPath(new URL('./redis-keeper.ts', import.meta.url))

export const MISSING = `redis-server is not installed; run 'apt-get install redis-server', or set MILLRACE_TEST_REDIS to the address of a server`

let shared: Promise<RedisServer> | null = null

/**
 * The server of this process: the one whose address is in MILLRACE_TEST_REDIS, or one of its own, started on the first
 * call. It ends with the process. With MILLRACE_TEST_SECURE=1 engines use it over TLS, as a user with few rights.
 */
export function redisServer(): Promise<RedisServer> {
  const given = process.env.MILLRACE_TEST_REDIS
  if (process.env.MILLRACE_TEST_SECURE === '1')
    shared ??= import('./redis-secure.ts').then(({ startSecureRedis }) => startSecureRedis())
  shared ??= given === undefined || given === '' ? startRedis() : Promise.resolve({ url: given })
  return shared
}

/** A server of its own, for tests that stop it or need other settings. */
export async function startRedis(settings: RedisSettings = {}): Promise<OwnRedis> {
  const program = findProgram('redis-server', 'redis-server')
  if (program === null) throw new Error(MISSING)
  const keeper = spawn(process.execPath, [KEEPER, program, ...argumentsOf(settings)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const lines = createInterface({ input: keeper.stdout })
  const answer = (): Promise<string> =>
    new Promise((resolve, reject) => {
      const fail = (): void => reject(new Error('the Redis of the tests did not start'))
      keeper.once('exit', fail)
      lines.once('line', (line) => {
        keeper.removeListener('exit', fail)
        if (line.startsWith('ready ')) resolve(line.slice('ready '.length))
        else reject(new Error(line))
      })
    })
  const port = Number(await answer())
  // It must not keep the tests alive; it goes when they do.
  keeper.unref()
  for (const stream of [keeper.stdin, keeper.stdout])
    if ('unref' in stream && typeof stream.unref === 'function') stream.unref()
  const tell = async (command: string): Promise<void> => {
    const alive = setInterval(() => {}, 1_000)
    const answered = answer()
    keeper.stdin.write(`${command}\n`)
    await answered.finally(() => clearInterval(alive))
  }
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    stop: () => tell('stop'),
    kill: () => tell('kill'),
    async start(data = 'kept') {
      if (data === 'gone') await tell('wipe')
      await tell('start')
    },
    async end() {
      if (keeper.exitCode !== null) return
      keeper.ref()
      const gone = new Promise((resolve) => keeper.once('exit', resolve))
      keeper.stdin.end()
      await gone
    },
  }
}

function argumentsOf({ aof = 'off', maxmemory = 0, eviction = 'noeviction', settings = {} }: RedisSettings): string[] {
  return [
    `appendonly=${aof === 'off' ? 'no' : 'yes'}`,
    ...(aof === 'off' ? [] : [`appendfsync=${aof}`]),
    `maxmemory=${maxmemory}`,
    `maxmemory-policy=${eviction}`,
    ...Object.entries(settings).map(([name, value]) => `${name}=${value}`),
  ]
}

let prefixes = 0

/** A prefix of keys that nobody else uses. */
export function freshPrefix(): string {
  prefixes += 1
  return `case_${process.pid}_${prefixes}`
}

/** The server's URL for an engine with this prefix, or a fresh one. */
export function prefixUrl(
  server: RedisServer,
  prefix: string = freshPrefix(),
): { readonly url: string; readonly prefix: string } {
  const url = new URL(server.engineUrl ?? server.url)
  url.searchParams.set('prefix', prefix)
  return { url: url.href, prefix }
}

/** A connection outside of any engine, as redis-cli would have. The prefix in a URL is not sent. */
export async function withRedis<Result>(url: string, use: (redis: Redis) => Promise<Result>): Promise<Result> {
  const address = new URL(url)
  address.searchParams.delete('prefix')
  const redis = new Redis(address.href, { lazyConnect: true, maxRetriesPerRequest: 1, retryStrategy: () => null })
  // Callers that wait for the connection get the error; a listener keeps ioredis from printing it too.
  redis.on('error', () => {})
  try {
    await redis.connect()
    return await use(redis)
  } finally {
    redis.disconnect()
  }
}

/** Every key that begins with the prefix and a colon, in order. */
export function keysOf(url: string, prefix: string): Promise<readonly string[]> {
  return withRedis(url, async (redis) => (await scanned(redis, prefix)).sort())
}

/** Deletes every key that begins with the prefix and a colon. */
export function dropPrefix(url: string, prefix: string): Promise<void> {
  return withRedis(url, async (redis) => {
    const keys = await scanned(redis, prefix)
    // One by one: on a node of a cluster they are on several slots.
    await Promise.all(keys.map((key) => redis.unlink(key)))
  })
}

async function scanned(redis: Redis, prefix: string): Promise<string[]> {
  const keys = new Set<string>()
  const pattern = `${prefix.replace(/[\\*?[\]]/g, '\\$&')}:*`
  let cursor = '0'
  do {
    const [next, found] = await redis.scan(cursor, 'MATCH', pattern, 'COUNT', 1_000)
    for (const key of found) keys.add(key)
    cursor = next
  } while (cursor !== '0')
  return [...keys]
}
