import { type Clock, systemClock } from '../../src/time/clock.ts'
import { numberOf } from '../database/columns.ts'
import { openDatabase, type WorkloadDatabase } from '../database/database.ts'
import { memoriesSchema } from './schema.ts'

export interface MemoryTablesOptions {
  /** Default: true for SQLite, false for Postgres, which `millrace migrate --workload memories` migrates. */
  readonly migrate?: boolean
  /** Refuse to create a file of SQLite; default: false. */
  readonly mustExist?: boolean
  readonly clock?: Clock
}

/**
 * Opens the tables of memories. SQLite overwrites what is deleted: forgotten text must not stay in free space of the file.
 *
 * @example
 * const repository = new MemoryRepository(await openMemoryTables('sqlite:./memories.db'))
 */
export async function openMemoryTables(url: string, options: MemoryTablesOptions = {}): Promise<WorkloadDatabase> {
  const database = await openDatabase(url, { schemas: [memoriesSchema], ...options })
  if (database.dialect.name === 'sqlite') await database.write([{ sql: 'PRAGMA secure_delete = ON' }])
  return database
}

/** Another process that reads keeps the log from being emptied; most reads take less. */
const ERASE_MS_MAX = 2_000
const ERASE_PAUSE_MS = 20

/**
 * Empties the write-ahead log of SQLite, where deleted text stays until then. False while another process reads: the next call
 * or checkpoint does it. Postgres overwrites it with its next vacuum.
 */
export async function eraseDeleted(database: WorkloadDatabase): Promise<boolean> {
  if (database.dialect.name !== 'sqlite') return true
  const untilMs = systemClock.monotonicMs() + ERASE_MS_MAX
  for (;;) {
    const [row = {}] = await database.read('PRAGMA wal_checkpoint(TRUNCATE)')
    if (numberOf(row, 'busy') === 0) return true
    if (systemClock.monotonicMs() > untilMs) return false
    await systemClock.sleep(ERASE_PAUSE_MS)
  }
}
