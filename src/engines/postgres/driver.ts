/** The part of `pg` that Millrace uses, by its shape: the user's pool or client of any version fits. */
import type { Socket } from 'node:net'
import { EngineError } from '../../errors.ts'

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
  query(query: PgQuery): Promise<PgResult>
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'end', listener: () => void): unknown
  on(event: 'notification', listener: (notification: PgNotification) => void): unknown
  removeListener(event: 'end', listener: () => void): unknown
  removeListener(event: 'notification', listener: (notification: PgNotification) => void): unknown
  end(): Promise<void>
}

export interface PgPoolClient extends PgClient {
  release(destroy?: Error | boolean): void
}

export interface PgPool {
  readonly totalCount: number
  readonly options?: { readonly max?: number }
  /** True once `end` was called. */
  readonly ending?: boolean
  connect(): Promise<PgPoolClient>
  on(event: 'error', listener: (error: Error) => void): unknown
  end(): Promise<void>
}

/** Settings of our own connections. */
export interface PgConnection {
  readonly connectionString: string
  readonly application_name: string
  readonly connectionTimeoutMillis: number
  readonly keepAlive: true
  readonly keepAliveInitialDelayMillis: number
  readonly statement_timeout?: number
  readonly options?: string
  /** Makes the socket; the driver connects it. */
  readonly stream?: () => Socket
}

interface PgModule {
  createPool(connection: PgConnection, max: number): PgPool
  createClient(connection: PgConnection): PgClient & { connect(): Promise<unknown> }
}

export async function loadPg(): Promise<PgModule> {
  const { default: pg } = await import('pg').catch((error: unknown) => {
    throw new EngineError('ERR_MODULE_MISSING', 'To use Postgres: npm install pg', { cause: error })
  })
  return {
    createPool: (connection, max) =>
      new pg.Pool({ ...connection, max, idleTimeoutMillis: 30_000 }) as unknown as PgPool,
    createClient: (connection) => new pg.Client(connection) as unknown as ReturnType<PgModule['createClient']>,
  }
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
