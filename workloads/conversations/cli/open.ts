import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import type { CommandCall } from '../../../src/cli/extensions.ts'
import { toOpenError } from '../../../src/engines/sqlite/faults.ts'
import { EngineError } from '../../../src/errors.ts'
import { checkListLimit } from '../../../src/job/list-limit.ts'
import { conversationsFile } from '../store/location.ts'
import { conversationsVersions } from '../store/schema.ts'

/** How long a command waits for another process that writes. */
const BUSY_MS = 5_000

export function missingDatabase(file: string): EngineError {
  return new EngineError(
    'ERR_SCHEMA_MISSING',
    `there are no conversations in '${file}'; check --engine, or record a first prompt with millrace-hook`,
  )
}

/** Opens the file of a command that only reads: a mistyped path gets an error, not a new empty file. */
export function reading<Answer>({ engine }: CommandCall, read: (database: DatabaseSync) => Answer): Answer {
  const { database: file } = conversationsFile(engine)
  if (!existsSync(file)) throw missingDatabase(file)
  let database: DatabaseSync | null = null
  try {
    database = new DatabaseSync(file, { readOnly: true, timeout: BUSY_MS })
    if (conversationsVersions(database).applied === 0) throw missingDatabase(file)
    return read(database)
  } catch (error) {
    throw toOpenError(error, 'reading', file)
  } finally {
    database?.close()
  }
}

export function limitOf({ options }: CommandCall): number {
  return checkListLimit(Number(options.limit))
}
