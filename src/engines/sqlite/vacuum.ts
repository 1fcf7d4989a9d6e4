import { DatabaseSync } from 'node:sqlite'
import { EngineError } from '../../errors.ts'
import { systemClock } from '../../time/clock.ts'
import type { SqliteDatabase } from './database.ts'
import { isBusy, toEngineError } from './faults.ts'

/** How long it waits for other connections: for the write lock, and for readers that still need the write-ahead log. */
const BUSY_MS_MAX = 2_000
const RETRY_MS = 20

/**
 * Writes a file anew and empties its write-ahead log, so that no byte of what was deleted or replaced is left in either. SQLite
 * only marks the space of deleted rows as free. `secure_delete` overwrites that space, but not the copies that a page keeps of
 * rows that moved to another page when it was split. Writers wait meanwhile, and the event loop of this process is blocked.
 *
 * False if another connection was in the way for two seconds: the file or its log may still have the text, and only another
 * call makes sure. An empty name is a database in memory, where nothing is left anyway.
 */
export async function rewriteFile(file: string): Promise<boolean> {
  if (file === '') return true
  // A connection of its own, because the engine's may not change the schema, which a vacuum does in a copy.
  const handle = new DatabaseSync(file, { timeout: 0 })
  try {
    const isRewritten = await untilFree(() => {
      handle.exec('VACUUM')
      return true
    })
    return isRewritten && (await untilFree(() => emptyLog(handle)))
  } finally {
    handle.close()
  }
}

/** For a command that has deleted rows and could not rewrite their file. */
export function notErased(): EngineError {
  return new EngineError(
    'ERR_STORAGE_BUSY',
    'everything is removed, but another process was using the file, so the text may still be in it or in its write-ahead log; end long reads and run the same command again',
  )
}

/** Moves the write-ahead log into the file and empties it. False when another connection is in the way. */
export function emptyLog(handle: SqliteDatabase): boolean {
  const { busy } = handle.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get() as { busy: number }
  return busy === 0
}

/** Tries for two seconds without holding a lock in between. */
async function untilFree(attempt: () => boolean): Promise<boolean> {
  const startedMs = systemClock.monotonicMs()
  for (;;) {
    try {
      if (attempt()) return true
    } catch (error) {
      if (!isBusy(error)) throw toEngineError(error, 'rewriting the file, so what was deleted may still be in it')
    }
    if (systemClock.monotonicMs() - startedMs > BUSY_MS_MAX) return false
    await systemClock.sleep(RETRY_MS)
  }
}
