import { rewriteFile } from '../../src/engines/sqlite/vacuum.ts'
import { numberOf, textOf } from './columns.ts'
import type { WorkloadDatabase } from './database.ts'

export { notErased } from '../../src/engines/sqlite/vacuum.ts'

/**
 * Makes sure that no byte of what was deleted is left in an SQLite file and its write-ahead log. False if another connection
 * was in the way. On Postgres it does nothing and returns true: no statement finds what was deleted, and only `VACUUM FULL`, which locks
 * the table, removes it from the files.
 */
export async function rewriteDatabase(database: WorkloadDatabase): Promise<boolean> {
  if (database.dialect.name === 'postgres') return true
  const [row = {}] = await database.read(`SELECT file FROM pragma_database_list WHERE name = 'main'`)
  return rewriteFile(textOf(row, 'file'))
}

/** Empties the write-ahead log of SQLite, which has deleted text until then. False when another connection is in the way. */
export async function emptyLogOf(database: WorkloadDatabase): Promise<boolean> {
  if (database.dialect.name === 'postgres') return true
  const [row = {}] = await database.read('PRAGMA wal_checkpoint(TRUNCATE)')
  return numberOf(row, 'busy') === 0
}
