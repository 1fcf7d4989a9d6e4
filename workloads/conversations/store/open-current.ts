/** Opening a file whose tables are up to date, as it nearly always is. The hook is built from this file too. */
import { DatabaseSync } from 'node:sqlite'
import { assertVersionText } from '../../../src/engines/sqlite/database.ts'
import { fieldOf } from '../../../src/errors.ts'

/** The last migrations of both schemas, without their SQL: loading that takes longer than the write. */
export const CURRENT_VERSIONS = { queue: 8, conversations: 1 } as const

const READ_VERSIONS = `SELECT (SELECT max(version) FROM millrace_schema) AS queue,
(SELECT max(version) FROM conversations_schema) AS conversations`

/** As openDatabase sets them, but for the size of the cache: a hook reads a few pages. */
const PRAGMAS = `PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF; PRAGMA secure_delete = ON`

const SQLITE_ERROR = 1

/** Null when tables are missing or of another version: then it takes openDatabase. */
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
    const versions = database.prepare(READ_VERSIONS).get()
    return versions?.queue === CURRENT_VERSIONS.queue && versions.conversations === CURRENT_VERSIONS.conversations
  } catch (error) {
    // There is no such table.
    if (fieldOf(error, 'errcode') === SQLITE_ERROR) return false
    throw error
  }
}
