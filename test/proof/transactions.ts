/** Transactions of a client's own, in the store of the jobs. Each has a connection of its own. */
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import type { BeginTransaction } from '../../proof/workload/own-transactions.ts'
import type { EngineName } from './scene.ts'

/** As long as a client of a busy database would wait for the lock. */
const BUSY_MS = 1_000

/** Null where the engine cannot join a transaction. */
export function transactionsOf(engine: EngineName, url: string): BeginTransaction | null {
  switch (engine) {
    case 'sqlite':
      return () => beginSqlite(url.slice('sqlite:'.length))
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
  const database = new DatabaseSync(file, { timeout: BUSY_MS })
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
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: BUSY_MS })
  // A server that goes away tells an idle connection by an event.
  client.on('error', () => {})
  const end = async (how: 'COMMIT' | 'ROLLBACK'): Promise<void> => {
    try {
      await client.query(how)
    } finally {
      await client.end().catch(() => {})
    }
  }
  await client.connect()
  await client.query('BEGIN')
  return { within: client, commit: () => end('COMMIT'), rollBack: () => end('ROLLBACK') }
}
