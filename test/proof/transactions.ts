/** Transactions of a client's own, in the store of the jobs. Each has a connection of its own. */
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import pg from 'pg'
import type { BeginTransaction } from '../../proof/workload/own-transactions.ts'
import { parseUrl as parsePostgresUrl } from '../../src/engines/postgres/options.ts'
import { parseUrl as parseSqliteUrl } from '../../src/engines/sqlite/url.ts'
import type { EngineName } from './scene.ts'

/** As long as a client of a busy database would wait for the lock. */
const BUSY_MS = 1_000

/** Null where the engine cannot join a transaction. */
export function transactionsOf(engine: EngineName, url: string): BeginTransaction | null {
  switch (engine) {
    case 'sqlite':
      return () => beginSqlite(parseSqliteUrl(url).database)
    case 'postgres':
      return () => beginPostgres(url)
    case 'memory':
    case 'redis':
    case 'kafka':
      return null
    default:
      return engine satisfies never
  }
}

const beginSqlite = async (file: string): ReturnType<BeginTransaction> => {
  // A file that is away for a moment must not be made anew.
  const database = new DatabaseSync(new URL(`${pathToFileURL(file).href}?mode=rw`), { timeout: BUSY_MS })
  const end = async (how: 'COMMIT' | 'ROLLBACK'): Promise<void> => {
    try {
      database.exec(how)
    } finally {
      database.close()
    }
  }
  try {
    database.exec('BEGIN IMMEDIATE')
  } catch (error) {
    database.close()
    throw error
  }
  return { within: database, commit: () => end('COMMIT'), rollBack: () => end('ROLLBACK') }
}

const beginPostgres = async (url: string): ReturnType<BeginTransaction> => {
  const client = await connectToPrimary(parsePostgresUrl(url).servers)
  const end = async (how: 'COMMIT' | 'ROLLBACK'): Promise<void> => {
    try {
      await client.query(how)
    } finally {
      await client.end().catch(() => {})
    }
  }
  return { within: client, commit: () => end('COMMIT'), rollBack: () => end('ROLLBACK') }
}

/** The first server that takes writes, with a transaction begun. */
async function connectToPrimary(servers: readonly string[]): Promise<pg.Client> {
  const errors: unknown[] = []
  for (const connectionString of servers) {
    const client = new pg.Client({ connectionString, connectionTimeoutMillis: BUSY_MS, query_timeout: 5 * BUSY_MS })
    // A server that goes away tells an idle connection by an event.
    client.on('error', () => {})
    try {
      await client.connect()
      await client.query('BEGIN READ WRITE')
      return client
    } catch (error) {
      errors.push(error)
      await client.end().catch(() => {})
    }
  }
  throw new AggregateError(errors, 'no server takes writes')
}
