/** Opening a file whose tables are up to date, as it nearly always is. The hook is built from this file too. */
import { DatabaseSync } from 'node:sqlite'
import { assertVersionText } from '../../../src/engines/sqlite/database.ts'
import { fieldOf } from '../../../src/errors.ts'

/** The last migrations of both schemas, without their SQL: loading that takes longer than the write. */
export const CURRENT_VERSIONS = { queue: 10, conversations: 1 } as const

/** As src/engines/sql/schema-version.ts reads them: the last migration is applied, and none after it needs another Millrace. */
const IS_CURRENT = `SELECT
(SELECT max(version) <= ${CURRENT_VERSIONS.queue} AND max(abs(version)) >= ${CURRENT_VERSIONS.queue} FROM millrace_schema)
AND (SELECT max(version) <= ${CURRENT_VERSIONS.conversations} AND max(abs(version)) >= ${CURRENT_VERSIONS.conversations}
  FROM conversations_schema) AS current`

/** As openDatabase sets them, but for the size of the cache: a hook reads a few pages. */
const PRAGMAS = `PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF; PRAGMA secure_delete = ON`

const SQLITE_ERROR = 1

/** Null when tables are missing or need a migration or a newer Millrace: then it takes openDatabase. */
export function openCurrent(file: string, busyMs: number): DatabaseSync | null {
  assertVersionText(process.versions.sqlite ?? '')
  const database = new DatabaseSync(file, { timeout: busyMs })
  try {
    database.exec(PRAGMAS)
    if (isCurrent(database)) return database
  } catch (error) {
    database.close()
    throw error
  }
  database.close()
  return null
}

function isCurrent(database: DatabaseSync): boolean {
  try {
    return database.prepare(IS_CURRENT).get()?.current === 1
  } catch (error) {
    // There is no such table.
    if (fieldOf(error, 'errcode') === SQLITE_ERROR) return false
    throw error
  }
}
