import { Socket } from 'node:net'
import { systemClock } from '../../time/clock.ts'
import type { Source } from './database.ts'
import { loadPg, type PgClient, type PgConnection, type PgPool, type PgPoolClient } from './driver.ts'
import type { PostgresAddress } from './options.ts'
import { Servers } from './servers.ts'
import { Spare } from './spare.ts'
import type { ListenConnection } from './wakeups.ts'

/** Where an engine gets its connections from: an address, or a pool or client of the user. */
export type Handle = { readonly pool: PgPool } | { readonly client: PgClient } | { readonly address: PostgresAddress }

export interface Connections {
  readonly source: Source
  /** A connection that stays open for LISTEN. */
  listen(): Promise<ListenConnection>
}

const CONNECT_MS = 10_000
/** The server gives up a statement at this share of `answerMs`, before the client does, so the outcome is known. */
const STATEMENT_SHARE = 0.8
/**
 * The server keeps the plans of prepared statements until the next analyze. A plan made for a small table would scan the
 * whole table long after it has grown. Every statement on the path of a job has an index, so our own connections are
 * told to use it. Just-in-time compilation would take longer than any of these statements.
 */
export const INDEXED_PLANS = ['enable_seqscan', 'enable_bitmapscan', 'enable_hashjoin', 'enable_mergejoin', 'jit']
  .map((name) => `-c ${name}=off`)
  .join(' ')
/** Counts of millions of jobs would take all cores of the server, with the jobs waiting meanwhile. */
const ONE_CORE = '-c max_parallel_workers_per_gather=0'
/** Statements are written for this level, whatever the default of the database is. The blank must be escaped. */
const ISOLATION = '-c default_transaction_isolation=read\\ committed'
/** The kernel then notices a peer that vanished. */
const KEEP_ALIVE_MS = 10_000
/** How often a call that waits for a connection checks whether the pool was ended. */
const ENDED_MS = 1_000

export async function connectionsOf(handle: Handle): Promise<Connections> {
  if ('client' in handle) return ofClient(handle.client)
  if ('pool' in handle) return ofPool(handle.pool)
  const pg = await loadPg()
  const { address } = handle
  const connection = connectionOf(address)
  const sockets = new Sockets()
  const pool = pg.createPool({ ...connection, stream: sockets.create }, address.pool)
  const spare = new Spare(pool, ofPool(pool).source.acquire)
  const listen = async (): Promise<ListenConnection> => {
    const socket = new Sockets()
    const client = pg.createClient({ ...connection, stream: socket.create })
    client.on('error', () => {})
    await client.connect()
    return { client, close: () => socket.ended(client.end()) }
  }
  return {
    source: {
      isPipelined: !address.pooled,
      acquire: () => spare.acquire(),
      close: () => {
        spare.close()
        return sockets.ended(pool.end())
      },
    },
    listen: () => connection.servers.reach(listen),
  }
}

function connectionOf({ servers, pooled, answerMs, channelBinding }: PostgresAddress): PgConnection {
  return {
    servers: new Servers(servers),
    application_name: 'millrace',
    channelBinding,
    connectionTimeoutMillis: Math.min(CONNECT_MS, answerMs),
    keepAlive: true,
    // A pooler may give each statement another server connection.
    pipeline: !pooled,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    // A pooler accepts no startup settings. tcp_user_timeout: a claim commits only after its answer is sent, so a frozen
    // process with a full socket would otherwise keep its locks for as long as it is frozen.
    ...(!pooled && {
      options: [INDEXED_PLANS, ONE_CORE, `-c tcp_user_timeout=${answerMs}`, ISOLATION].join(' '),
    }),
    ...(!pooled && { statement_timeout: Math.ceil(answerMs * STATEMENT_SHARE) }),
  }
}

/** The pool belongs to the user and is never ended here. */
function ofPool(pool: PgPool): Connections {
  const known = new WeakSet<PgClient>()
  // The pool replaces an idle connection that breaks. Without a listener the error would end the process.
  const ignore = (): void => {}
  const guard = (client: PgClient): void => {
    if (!known.has(client)) client.on('error', ignore)
    known.add(client)
  }
  pool.on('error', ignore)
  // Not only when it is acquired: a server that stops may end the connection in the packet that says that it is open.
  pool.on('connect', guard)
  const acquire = async (): Promise<PgPoolClient> => {
    const client = await unlessEnded(pool, pool.connect())
    // It may be older than this engine.
    guard(client)
    return client
  }
  return {
    source: { acquire, close: async () => {} },
    async listen() {
      if (pool.options?.max === 1) throw new Error('a pool of one connection cannot spare it for LISTEN')
      const client = await acquire()
      return { client, close: async () => client.release(true) }
    },
  }
}

/** pg drops waiting callers when a pool is ended, so a call made just before would wait forever. */
function unlessEnded(pool: PgPool, connecting: Promise<PgPoolClient>): Promise<PgPoolClient> {
  return new Promise((resolve, reject) => {
    let isOver = false
    const look = (): void => {
      isOver = pool.ending === true
      if (isOver) reject(new Error('the pool was ended while waiting for a connection'))
      else cancel = systemClock.after(ENDED_MS, look)
    }
    let cancel = systemClock.after(ENDED_MS, look)
    connecting.finally(() => cancel()).then((client) => (isOver ? client.release(true) : resolve(client)), reject)
  })
}

function ofClient(client: PgClient): Connections {
  return { source: sourceOfClient(client), listen: async () => ({ client, close: async () => {} }) }
}

/** Lends the user's client to one call after the other, because a transaction needs it alone. */
export function sourceOfClient(client: PgClient): Source {
  let free: Promise<void> = Promise.resolve()
  let release = (): void => {}
  const lent = new Proxy(client, {
    get: (target, name) => {
      if (name === 'release') return release
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  }) as PgPoolClient
  return {
    async acquire() {
      const turn = Promise.withResolvers<void>()
      const before = free
      free = turn.promise
      await before
      release = () => turn.resolve()
      return lent
    },
    close: async () => {},
  }
}

/** A server that still answers closes the connection at once. */
const GOODBYE_MS = 1_000

/**
 * The sockets of our own connections. The driver waits forever for a server that vanished to close the connection, and
 * such a socket keeps the process alive. Here it can be destroyed.
 */
class Sockets {
  readonly #open = new Set<Socket>()

  /** The driver calls it for each connection. */
  readonly create = (): Socket => {
    const socket = new Socket()
    this.#open.add(socket)
    socket.once('close', () => this.#open.delete(socket))
    return socket
  }

  /** Resolves when the driver has ended. Destroys sockets that keep it from ending. */
  async ended(driver: Promise<unknown>): Promise<void> {
    const over = new AbortController()
    const end = driver.finally(() => over.abort())
    await Promise.race([end, systemClock.sleep(GOODBYE_MS, over.signal)])
    for (const socket of this.#open) socket.destroy()
    await end
  }
}
