import { DatabaseSync } from 'node:sqlite'
import { EngineError } from '../../errors.ts'
import { systemClock } from '../../time/clock.ts'
import type { SqliteCore } from './core.ts'
import { fileOf } from './database.ts'
import { isBusy, toEngineError } from './faults.ts'

/** How long it waits for other connections: for the write lock, and for readers that still need the write-ahead log. */
const BUSY_MS_MAX = 2_000
const RETRY_MS = 20

/**
 * Writes the file anew and empties its write-ahead log, so that no byte of deleted text is left. SQLite only marks the space
 * of deleted rows as free; `secure_delete` overwrites that, but not the copies that a page keeps of rows that moved to
 * another one. Writers wait meanwhile, and the event loop of this process is blocked.
 */
export async function vacuumDeleted(core: SqliteCore): Promise<void> {
  const file = fileOf(core.connection.handle)
  if (file === '') return
  // A connection of its own, because the engine's may not change the schema, which a vacuum does in a copy.
  const handle = new DatabaseSync(file, { timeout: 0 })
  try {
    await untilFree(() => {
      handle.exec('VACUUM')
      return true
    })
    await untilFree(() => handle.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.busy === 0)
  } finally {
    handle.close()
  }
}

async function untilFree(attempt: () => boolean): Promise<void> {
  const startedMs = systemClock.monotonicMs()
  for (;;) {
    try {
      if (attempt()) return
    } catch (error) {
      if (!isBusy(error)) throw toEngineError(error, 'the jobs are erased, but their text may still be in the file')
    }
    if (systemClock.monotonicMs() - startedMs > BUSY_MS_MAX) {
      throw new EngineError(
        'ERR_STORAGE_BUSY',
        'SQLite: the jobs are erased, but another connection was in the way, so their text may still be in the file and its log; end long transactions and erase the same ids again',
      )
    }
    await systemClock.sleep(RETRY_MS)
  }
}
