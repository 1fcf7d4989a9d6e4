/** The part of `pg` that Millrace uses, by its shape: the user's pool or client of any version fits. */
import type { Socket } from 'node:net'
import { EngineError } from '../../errors.ts'
import type { ChannelBinding } from './options.ts'
import { primaryClient } from './primary-client.ts'
import type { Servers } from './servers.ts'

export interface PgQuery {
  readonly text: string
  readonly values: readonly unknown[]
  /** Prepared under this name, once per connection. */
  readonly name?: string
  readonly query_timeout?: number
  /** Rows as lists of values, in the order of the columns. */
  readonly rowMode?: 'array'
}

interface PgResult {
  readonly rows: readonly unknown[]
  readonly rowCount: number | null
}

export interface PgNotification {
  readonly channel: string
  readonly payload?: string | undefined
}

/** One connection: a client of a pool, or the user's `Client`. */
export interface PgClient {
  /** Whether it sends a statement without waiting for the answers to those before. */
  readonly pipeline?: boolean
  query(query: PgQuery): Promise<PgResult>
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'end', listener: () => void): unknown
  on(event: 'notification', listener: (notification: PgNotification) => void): unknown
  removeListener(event: 'error' | 'end', listener: () => void): unknown
  removeListener(event: 'notification', listener: (notification: PgNotification) => void): unknown
  end(): Promise<void>
}

export interface PgPoolClient extends PgClient {
  release(destroy?: Error | boolean): void
}

export interface PgPool {
  readonly totalCount: number
  /** Callers that wait for a connection. */
  readonly waitingCount: number
  readonly options?: { readonly max?: number }
  /** True once `end` was called. */
  readonly ending?: boolean
  connect(): Promise<PgPoolClient>
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'connect', listener: (client: PgClient) => void): unknown
  end(): Promise<void>
}

/** Settings of our own connections. */
export interface PgConnection {
  readonly servers: Servers
  readonly application_name: string
  readonly connectionTimeoutMillis: number
  readonly keepAlive: true
  readonly pipeline?: boolean
  readonly keepAliveInitialDelayMillis: number
  readonly statement_timeout?: number
  readonly options?: string
  readonly channelBinding: ChannelBinding
  /** Makes the socket; the driver connects it. */
  readonly stream?: () => Socket
}

interface PgModule {
  /** An idle connection is closed after `idleMs`; 0 keeps it. Default: 30 s. */
  createPool(connection: PgConnection, max: number, idleMs?: number): PgPool
  createClient(connection: PgConnection): PgClient & { connect(): Promise<unknown> }
}

export async function loadPg(): Promise<PgModule> {
  const { default: pg } = await import('pg').catch((error: unknown) => {
    throw new EngineError('ERR_MODULE_MISSING', 'To use Postgres: npm install pg', { cause: error })
  })
  /** The driver binds where the server offers it, and logs in without where not. */
  class BindingClient extends pg.Client {
    constructor(config?: ConstructorParameters<typeof pg.Client>[0]) {
      super(config)
      let isBound = false
      const { connection } = this
      connection.on('authenticationSASL', ({ mechanisms }: { readonly mechanisms: readonly string[] }) => {
        isBound = mechanisms.includes('SCRAM-SHA-256-PLUS')
        if (!isBound) connection.emit('error', unbound())
      })
      connection.on('authenticationOk', () => {
        if (!isBound) connection.emit('error', unbound())
      })
    }
  }
  const configOf = ({ channelBinding, servers, ...connection }: PgConnection) => ({
    ...connection,
    connectionString: servers.current,
    enableChannelBinding: channelBinding !== 'disable',
  })
  const clientOf = ({ channelBinding, servers }: PgConnection): typeof pg.Client => {
    const client = channelBinding === 'require' ? BindingClient : pg.Client
    return servers.count === 1 ? client : primaryClient(client, servers)
  }
  return {
    createPool: (connection, max, idleTimeoutMillis = 30_000) => {
      const settings = { ...configOf(connection), max, idleTimeoutMillis, Client: clientOf(connection) }
      const pool = new pg.Pool(settings) as unknown as PgPool
      const { servers } = connection
      if (servers.count === 1) return pool
      const connect = pool.connect.bind(pool)
      // With a callback it is the driver's own call, for a query without a client.
      return Object.assign(pool, {
        connect: (...callback: unknown[]) =>
          callback.length === 0 ? servers.reach(connect) : Reflect.apply(connect, pool, callback),
      })
    },
    createClient: (connection) =>
      new (clientOf(connection))(configOf(connection)) as unknown as ReturnType<PgModule['createClient']>,
  }
}

function unbound(): EngineError {
  const text = `the server does not bind the login to its certificate, which channel_binding=require asks for`
  return new EngineError(
    'ERR_STORAGE_OPEN',
    `Postgres: ${text}; give the role a scram-sha-256 password and use TLS, or write channel_binding=prefer`,
  )
}

function hasMethods(handle: object, names: readonly string[]): boolean {
  return names.every((name) => typeof Reflect.get(handle, name) === 'function')
}

export function isPool(handle: object): handle is PgPool {
  return hasMethods(handle, ['connect', 'query', 'end', 'on']) && typeof Reflect.get(handle, 'totalCount') === 'number'
}

export function isClient(handle: object): handle is PgClient {
  return hasMethods(handle, ['query', 'on', 'removeListener']) && !isPool(handle)
}

/** Runs statements in the user's transaction: a client, or the equivalent of an ORM. */
export function isTransaction(handle: object): handle is Pick<PgClient, 'query'> {
  return hasMethods(handle, ['query']) && !isPool(handle)
}

/**
 * Texts as a Postgres array literal. The driver would inspect every character of every element, which is noticeable on the
 * path of every job, and most arrays need no escaping.
 */
export function arrayOf(values: readonly string[]): string {
  if (values.length === 0) return '{}'
  const text = values.join('')
  const needsEscaping = text.includes('"') || text.includes('\\')
  return `{"${(needsEscaping ? values.map(escaped) : values).join('","')}"}`
}

/** Finite numbers as a Postgres array literal, for the same reason. */
export function arrayOfNumbers(values: readonly number[]): string {
  return `{${values.join(',')}}`
}

function escaped(value: string): string {
  return value.replaceAll(/["\\]/g, '\\$&')
}
