import type { Transaction } from '../../engine/engine.ts'
import { EngineError } from '../../errors.ts'
import type { SqliteCore } from './core.ts'
import { Connection, fileOf, isInTransaction, isSqliteDatabase } from './database.ts'

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
