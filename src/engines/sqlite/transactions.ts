import type { Receipt, Transaction } from '../../engine/engine.ts'
import { EngineError } from '../../errors.ts'
import type { NewJob } from '../../job/job.ts'
import type { SqliteCore } from './core.ts'
import { Connection, fileOf, isInTransaction, isSqliteDatabase } from './database.ts'
import { insertJobs } from './enqueue.ts'

/** The caller's connection, which must be in a transaction on the engine's file. */
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
 * Stores the jobs inside the caller's transaction. If one comes after an unknown job, none is stored, and the transaction
 * stays usable.
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
