import type { Receipt, Transaction } from '../../engine/engine.ts'
import { EngineError } from '../../errors.ts'
import type { NewJob } from '../../job/job.ts'
import type { SqliteCore } from './core.ts'
import { Connection, fileOf, isInTransaction, isSqliteDatabase } from './database.ts'
import { insertJobs } from './enqueue.ts'

/** The user's own connection, which must be in a transaction on our file: what is written there appears with it, or never. */
export function connectionWithin({ connection }: SqliteCore, within: Transaction): Connection {
  if (!isSqliteDatabase(within) || !isInTransaction(within)) {
    throw new EngineError(
      'ERR_STORAGE_FAILED',
      `'within' must be a database handle with an open transaction; run BEGIN on it first`,
    )
  }
  if (fileOf(connection.handle) !== fileOf(within)) {
    throw new EngineError(
      'ERR_STORAGE_FAILED',
      `'within' is a transaction on another database file; open Millrace on the same file`,
    )
  }
  return new Connection(within)
}

/**
 * Stores the jobs inside a transaction of the user's own. If one comes after a job that nobody knows, none of them is
 * stored, and the rest of the transaction is the user's to keep.
 */
export function insertWithin(connection: Connection, jobs: readonly NewJob[], nowMs: number): readonly Receipt[] {
  if (jobs.every(({ after }) => after === null)) return insertJobs(connection, jobs, { nowMs, individually: true })
  connection.exec('SAVEPOINT millrace_enqueue')
  try {
    return insertJobs(connection, jobs, { nowMs, individually: true })
  } catch (error) {
    connection.exec('ROLLBACK TO millrace_enqueue')
    throw error
  } finally {
    connection.exec('RELEASE millrace_enqueue')
  }
}
