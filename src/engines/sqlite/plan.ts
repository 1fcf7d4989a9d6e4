import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import type { MigrationPlan } from '../../engine/open.ts'
import { isMillraceError } from '../../errors.ts'
import { Connection } from './database.ts'
import { toEngineError } from './faults.ts'
import { assertCurrent, pendingMigrations, SCHEMA_VERSION, schemaVersion } from './migrate.ts'

/** A command that only looks may wait this long for a checkpoint of someone else. */
const BUSY_MS = 1_000

/** What opening the file with `migrate` would change. Read-only: a file that is missing stays missing. */
export function planMigrationsOf(file: string): MigrationPlan {
  const isThere = file !== ':memory:' && existsSync(file)
  try {
    const handle = new DatabaseSync(isThere ? file : ':memory:', { readOnly: isThere, timeout: BUSY_MS })
    const connection = new Connection(handle)
    try {
      refuseNewer(connection)
      return { version: schemaVersion(connection), latest: SCHEMA_VERSION, pending: pendingMigrations(connection) }
    } finally {
      connection.close()
    }
  } catch (error) {
    throw toEngineError(error, `reading ${file}`)
  }
}

function refuseNewer(connection: Connection): void {
  try {
    assertCurrent(connection)
  } catch (error) {
    if (!isMillraceError(error, 'ERR_SCHEMA_MISSING')) throw error
  }
}
