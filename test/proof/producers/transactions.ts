/** Transactions of the clients' own, in the store of the jobs. */
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import pg from 'pg'
import type { BeginTransaction } from '../../../proof/workload/own-transactions.ts'
import { parseUrl as parsePostgresUrl } from '../../../src/engines/postgres/options.ts'
import { parseUrl as parseSqliteUrl } from '../../../src/engines/sqlite/url.ts'

/** Undefined where the engine joins none. */
export function transactionsFor(url: string): BeginTransaction | undefined {
  if (url.startsWith('sqlite:')) return inSqlite(parseSqliteUrl(url).database)
  return url.startsWith('postgres') ? inPostgres(url) : undefined
}

function inSqlite(file: string): BeginTransaction {
  return async () => {
    // A file that is away for a moment must not be made anew.
    const within = new DatabaseSync(new URL(`${pathToFileURL(file).href}?mode=rw`), { timeout: 5_000 })
    const end = async (statement: string): Promise<void> => {
      try {
        within.exec(statement)
      } finally {
        within.close()
      }
    }
    try {
      within.exec('BEGIN IMMEDIATE')
    } catch (error) {
      within.close()
      throw error
    }
    return { within, commit: () => end('COMMIT'), rollBack: () => end('ROLLBACK') }
  }
}

/** A connection for each: one that was cut serves no other. */
function inPostgres(url: string): BeginTransaction {
  const { servers, answerMs } = parsePostgresUrl(url)
  return async () => {
    const client = await connectToPrimary(servers, answerMs)
    const end = async (statement: string): Promise<void> => {
      try {
        await client.query(statement)
      } finally {
        await client.end().catch(() => {})
      }
    }
    return { within: client, commit: () => end('COMMIT'), rollBack: () => end('ROLLBACK') }
  }
}

/** The first server that takes writes, with a transaction begun. */
async function connectToPrimary(servers: readonly string[], answerMs: number): Promise<pg.Client> {
  const errors: unknown[] = []
  for (const connectionString of servers) {
    const client = new pg.Client({ connectionString, connectionTimeoutMillis: answerMs, query_timeout: answerMs })
    // A connection that breaks is told by the next statement, and here, where nobody need hear of it.
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
