import { DatabaseSync } from 'node:sqlite'
import { Connection, configure, type SqliteDatabase } from '../../../src/engines/sqlite/database.ts'
import { applyMigrations, needsMigration } from '../../../src/engines/sqlite/migrate.ts'
import { emptyLog } from '../../../src/engines/sqlite/vacuum.ts'
import { type Clock, systemClock } from '../../../src/time/clock.ts'
import { toIso } from '../../../src/time/iso.ts'
import { areConversationsBehind, migrateConversations } from './schema.ts'
import { inTransaction } from './transaction.ts'

export { inTransaction }

/** How long a transaction waits for the write lock of another process; default: 5 s. The thread is blocked meanwhile. */
const BUSY_MS = 5_000

export interface OpenDatabaseOptions {
  readonly nowMs: number
  readonly busyMs?: number
}

/**
 * Opens the file and creates `job_queue` and the pipeline's tables where they are missing. Commits are on the disk when
 * they return (synchronous=full).
 */
export function openDatabase(file: string, { nowMs, busyMs = BUSY_MS }: OpenDatabaseOptions): DatabaseSync {
  const database = new DatabaseSync(file, { timeout: busyMs })
  try {
    const connection = new Connection(database)
    configure(connection, 'FULL', true)
    database.exec(`PRAGMA busy_timeout = ${busyMs}`)
    // Most of what is replaced or removed by age is overwritten in the file, on every connection that writes messages.
    database.exec('PRAGMA secure_delete = ON')
    migrate(database, nowMs)
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

/**
 * Creates or updates `job_queue` and the pipeline's tables, on a handle of node:sqlite or better-sqlite3.
 *
 * @example
 * const db = new DatabaseSync(':memory:')
 * runMigrations(db)
 */
export function runMigrations(db: SqliteDatabase, { clock = systemClock }: { readonly clock?: Clock } = {}): void {
  migrate(db, clock.nowMs())
}

export function migrate(database: SqliteDatabase, nowMs: number): void {
  const connection = new Connection(database)
  if (!needsMigration(connection) && !areConversationsBehind(database)) return
  inTransaction(database, () => {
    applyMigrations(connection, nowMs)
    migrateConversations(database, toIso(nowMs))
  })
}

/** Shorter than the hook waits for the lock, which this holds while it waits for readers. */
const EMPTY_WAL_MS = 300

/**
 * Moves the write-ahead log into the file and empties it: it still has the text that a transaction replaced or deleted. False
 * when another connection is in the way; a later call does it then.
 */
export function emptyWal(database: DatabaseSync): boolean {
  const timeout = Number(database.prepare('PRAGMA busy_timeout').get()?.timeout)
  database.exec(`PRAGMA busy_timeout = ${Math.min(timeout, EMPTY_WAL_MS)}`)
  try {
    return emptyLog(database)
  } finally {
    database.exec(`PRAGMA busy_timeout = ${timeout}`)
  }
}
