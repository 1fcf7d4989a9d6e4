import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { migrate } from '../../src/engines/postgres/module.ts'
import { systemClock } from '../../src/time/clock.ts'
import type { Certificates } from './certificates.ts'

export interface PostgresServer {
  /** Of an administrator, to the database `postgres`; without a schema. */
  readonly url: string
  /** Of the engines, where it is another. */
  readonly engineUrl?: string
  /** Where it does TLS. */
  readonly certificates?: Certificates
  /** Stops it in an orderly way, or without a goodbye, and starts it again on the same port. Null on a given server. */
  readonly restart: ((how: 'restart' | 'crash') => Promise<void>) | null
  /** Ends it before the process does, and removes its data. A given server is left alone. */
  stop(): Promise<void>
}

const KEEPER = fileURLToPath(new URL('./postgres-keeper.ts', import.meta.url))

let shared: Promise<PostgresServer> | null = null

/**
 * The server of this process: the one whose address is in MILLRACE_TEST_POSTGRES, or one of its own, started on the
 * first call. It ends with the process. With MILLRACE_TEST_SECURE=1 engines use it over TLS, as a role with few rights.
 */
export function postgresServer(): Promise<PostgresServer> {
  shared ??= startServer()
  return shared
}

async function startServer(): Promise<PostgresServer> {
  if (process.env.MILLRACE_TEST_SECURE === '1') return (await import('./postgres-secure.ts')).startSecurePostgres()
  const given = process.env.MILLRACE_TEST_POSTGRES
  return given === undefined || given === '' ? startPostgres() : { url: given, restart: null, stop: async () => {} }
}

export interface OwnPostgres extends PostgresServer {
  /** The folder of its data. A server that is started with the setting `standby-of=<data>` follows this one. */
  readonly data: string
  /** Ends it with all its processes and without a goodbye, as if its machine were gone; `start` starts it again. */
  kill(): Promise<void>
  start(): Promise<void>
  /** Stops all its processes; connections stand and nothing answers until `thaw`. */
  freeze(): Promise<void>
  thaw(): Promise<void>
}

/** A server of its own, for tests that restart it or need other `settings`. */
export async function startPostgres(settings: readonly string[] = []): Promise<OwnPostgres> {
  const keeper = spawn(process.execPath, [KEEPER, ...settings], { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface({ input: keeper.stdout })
  const ready = (): Promise<string> =>
    new Promise((resolve, reject) => {
      const fail = (): void => reject(new Error('the Postgres of the tests did not start; run npm install'))
      keeper.once('exit', fail)
      lines.once('line', (line) => {
        keeper.removeListener('exit', fail)
        resolve(line)
      })
    })
  const [, port, data = ''] = (await ready()).split(' ')
  // It must not keep the tests alive; it goes when they do.
  keeper.unref()
  for (const stream of [keeper.stdin, keeper.stdout])
    if ('unref' in stream && typeof stream.unref === 'function') stream.unref()
  const tell = async (command: 'restart' | 'crash' | 'kill' | 'start' | 'freeze' | 'thaw'): Promise<void> => {
    const answered = ready()
    keeper.stdin.write(`${command}\n`)
    const alive = setInterval(() => {}, 1_000)
    await answered.finally(() => clearInterval(alive))
  }
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    data,
    restart: tell,
    kill: () => tell('kill'),
    start: () => tell('start'),
    freeze: () => tell('freeze'),
    thaw: () => tell('thaw'),
    async stop() {
      keeper.ref()
      const gone = new Promise((resolve) => keeper.once('exit', resolve))
      keeper.stdin.end()
      await gone
    },
  }
}

let schemas = 0

/** The URL of a schema that nobody else uses. */
export function schemaUrl(server: PostgresServer): { readonly url: string; readonly schema: string } {
  schemas += 1
  const schema = `case_${process.pid}_${schemas}`
  const url = new URL(server.engineUrl ?? server.url)
  url.searchParams.set('schema', schema)
  return { url: url.href, schema }
}

/** A schema of its own on the server of this process, with all tables. */
export async function migratedSchema() {
  const server = await postgresServer()
  const place = schemaUrl(server)
  await migrate(place.url, { clock: systemClock, migrate: true })
  return { server, ...place }
}

/** Statements outside of any engine, as psql would send them. */
export async function query<Row>(url: string, text: string, values?: unknown[]): Promise<readonly Row[]> {
  const address = new URL(url)
  address.searchParams.delete('schema')
  const client = new pg.Client({ connectionString: address.href })
  await client.connect()
  try {
    return (await client.query(text, values)).rows
  } finally {
    await client.end()
  }
}

export async function dropSchema(url: string, schema: string): Promise<void> {
  await query(url, `drop schema if exists ${pg.escapeIdentifier(schema)} cascade`)
}
