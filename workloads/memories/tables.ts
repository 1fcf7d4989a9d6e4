import type { Clock } from '../../src/time/clock.ts'
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
 * Opens the tables of memories. SQLite overwrites most of what a cleanup deletes; what is forgotten is erased for certain.
 *
 * @example
 * const repository = new MemoryRepository(await openMemoryTables('sqlite:./memories.db'))
 */
export async function openMemoryTables(url: string, options: MemoryTablesOptions = {}): Promise<WorkloadDatabase> {
  const database = await openDatabase(url, { schemas: [memoriesSchema], ...options })
  if (database.dialect.name === 'sqlite') await database.write([{ sql: 'PRAGMA secure_delete = ON' }])
  return database
}
