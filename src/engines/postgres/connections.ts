import { Socket } from 'node:net'
import { systemClock } from '../../time/clock.ts'
import { type Source, sourceOfClient } from './database.ts'
import { loadPg, type PgClient, type PgConnection, type PgPool, type PgPoolClient } from './driver.ts'
import type { PostgresAddress } from './options.ts'
import type { ListenConnection } from './wakeups.ts'

/** Where an engine gets its connections from: an address, or what the user has opened. */
export type Handle = { readonly pool: PgPool } | { readonly client: PgClient } | { readonly address: PostgresAddress }

export interface Connections {
  readonly source: Source
  /** A connection that stays, for LISTEN. */
  listen(): Promise<ListenConnection>
}

const CONNECT_MS = 10_000
/** Of the time after which we give up an answer: so the server comes first, and nothing is unknown. */
const STATEMENT_SHARE = 0.8
/**
 * A plan that was made while the table was small would read all of it long after it has grown: the server keeps plans of
 * prepared statements until the next analyze. Every statement on the way of a job has an index to go by, so the
 * connections of our own are told to use one. Just-in-time compilation would take longer than any of them.
 */
const PLANS = ['enable_seqscan', 'enable_bitmapscan', 'enable_hashjoin', 'enable_mergejoin', 'jit']
/** Every statement is written for it, whatever the database's default is. A blank in a value is escaped. */
const ISOLATION = '-c default_transaction_isolation=read\\ committed'
/** A peer that is gone without a goodbye is noticed by the kernel. */
const KEEP_ALIVE_MS = 10_000
/** How often a call that waits for a connection looks whether the pool was ended meanwhile. */
const ENDED_MS = 1_000

export async function connectionsOf(handle: Handle): Promise<Connections> {
  if ('client' in handle) return ofClient(handle.client)
  if ('pool' in handle) return ofPool(handle.pool)
  const pg = await loadPg()
  const { address } = handle
  const connection = connectionOf(address)
  const sockets = new Sockets()
  const pool = pg.createPool({ ...connection, stream: sockets.create }, address.pool)
  const { acquire } = ofPool(pool).source
  return {
    source: { acquire, close: () => sockets.ended(pool.end()) },
    async listen() {
      const socket = new Sockets()
      const client = pg.createClient({ ...connection, stream: socket.create })
      client.on('error', () => {})
      await client.connect()
      return { client, close: () => socket.ended(client.end()) }
    },
  }
}

function connectionOf({ connectionString, pooled, answerMs }: PostgresAddress): PgConnection {
  return {
    connectionString,
    application_name: 'millrace',
    connectionTimeoutMillis: Math.min(CONNECT_MS, answerMs),
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    // A pooler takes no settings at the start of a connection. The last one: a claim is not committed before its answer is
    // sent, so a process that is frozen with its socket full would keep what it has locked for as long as it is frozen.
    ...(!pooled && {
      options: [...PLANS.map((name) => `-c ${name}=off`), `-c tcp_user_timeout=${answerMs}`, ISOLATION].join(' '),
    }),
    ...(!pooled && { statement_timeout: Math.ceil(answerMs * STATEMENT_SHARE) }),
  }
}

/** It is not ours to end. */
function ofPool(pool: PgPool): Connections {
  const known = new WeakSet<PgPoolClient>()
  // An idle connection that breaks is replaced by the pool; without a listener it would end the process.
  const ignore = (): void => {}
  pool.on('error', ignore)
  const acquire = async (): Promise<PgPoolClient> => {
    const client = await unlessEnded(pool, pool.connect())
    if (!known.has(client)) client.on('error', ignore)
    known.add(client)
    return client
  }
  return {
    source: { acquire, close: async () => {} },
    async listen() {
      if (pool.options?.max === 1) throw new Error('a pool of one connection has none to spare for LISTEN')
      const client = await acquire()
      return { client, close: async () => client.release(true) }
    },
  }
}

/** pg forgets who waits for a connection when the pool is ended, so a call made just before that would wait for ever. */
function unlessEnded(pool: PgPool, connecting: Promise<PgPoolClient>): Promise<PgPoolClient> {
  return new Promise((resolve, reject) => {
    let isOver = false
    const look = (): void => {
      isOver = pool.ending === true
      if (isOver) reject(new Error('the pool was ended while a connection was waited for'))
      else cancel = systemClock.after(ENDED_MS, look)
    }
    let cancel = systemClock.after(ENDED_MS, look)
    connecting.finally(() => cancel()).then((client) => (isOver ? client.release(true) : resolve(client)), reject)
  })
}

function ofClient(client: PgClient): Connections {
  return { source: sourceOfClient(client), listen: async () => ({ client, close: async () => {} }) }
}

/** A server that is there takes leave at once. */
const GOODBYE_MS = 1_000

/**
 * The sockets under connections of our own. The driver waits without end for the goodbye of a server that is gone in
 * silence, and such a socket keeps the process alive; here it can be cut off.
 */
class Sockets {
  readonly #open = new Set<Socket>()

  /** What the driver opens a connection with. */
  readonly create = (): Socket => {
    const socket = new Socket()
    this.#open.add(socket)
    socket.once('close', () => this.#open.delete(socket))
    return socket
  }

  /** Resolves when the driver has ended, and cuts off what does not let it. */
  async ended(driver: Promise<unknown>): Promise<void> {
    const over = new AbortController()
    const end = driver.finally(() => over.abort())
    await Promise.race([end, systemClock.sleep(GOODBYE_MS, over.signal)])
    for (const socket of this.#open) socket.destroy()
    await end
  }
}
