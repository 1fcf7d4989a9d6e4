import { isInTransaction, type SqliteDatabase } from '../../../src/engines/sqlite/database.ts'

/** Runs it in a write transaction: committed when it returns, rolled back when it throws. It must not await. */
export function inTransaction<Answer>(database: SqliteDatabase, run: () => Answer): Answer {
  database.exec('BEGIN IMMEDIATE')
  try {
    const answer = run()
    database.exec('COMMIT')
    return answer
  } catch (error) {
    if (isInTransaction(database)) database.exec('ROLLBACK')
    throw error
  }
}
