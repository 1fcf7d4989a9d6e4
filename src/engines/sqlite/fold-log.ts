import { systemClock } from '../../time/clock.ts'
import type { Connection } from './database.ts'
import { isBusy } from './faults.ts'

/** Others may be folding the log back themselves, or be in the middle of a read: mostly for some milliseconds. */
const TRIES_MAX = 25
const RETRY_MS = 2

/**
 * Folds the log back before this connection closes. SQLite does it only for the last one to close, and two that close at the
 * same moment each find the other one there: then nobody does. So a connection that wrote something folds it back first. No
 * writer and no reader waits for that.
 *
 * It never fails: the log has everything, and the next process that opens the file reads it.
 */
export async function foldLog(connection: Connection): Promise<void> {
  try {
    if (!hasWritten(connection)) return
    for (let tries = 1; !isFolded(connection) && tries < TRIES_MAX; tries += 1) await systemClock.sleep(RETRY_MS)
  } catch {
    // A full disk, or a file that is gone. Every write has reported it already.
  }
}

function hasWritten(connection: Connection): boolean {
  const { rows } = connection.prepare('SELECT total_changes() AS rows').get() as { rows: number }
  return rows > 0
}

/** Both are -1 for a database in memory, which has no log. */
function isFolded(connection: Connection): boolean {
  try {
    const found = connection.prepare('PRAGMA wal_checkpoint(PASSIVE)').get()
    const { busy, log, checkpointed } = found as { busy: number; log: number; checkpointed: number }
    return busy === 0 && log === checkpointed
  } catch (error) {
    if (isBusy(error)) return false
    throw error
  }
}
