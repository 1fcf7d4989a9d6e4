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

/** Pages of the log after which a commit folds it back: 8 MiB. A fold pauses the event loop, and 4 MiB meant twice as many. */
export const WAL_PAGES = 2_000
/** Where SQLite itself does it at the latest, in a file that processes share. */
const WAL_PAGES_SHARED = 2 * WAL_PAGES

/**
 * Several processes write the file. SQLite folds a log of WAL_PAGES back while others go on writing. It never catches up
 * with busy ones, so the log is never begun anew, and half of the commits fold back some pages, with two syncs each. So here
 * it is left to `foldLongLog`.
 */
export function shareLog(connection: Connection): void {
  connection.exec(`PRAGMA wal_autocheckpoint = ${WAL_PAGES_SHARED}`)
}

/**
 * Right after a commit, when nobody else has the write lock yet. Others wait until all is folded back, and the next one begins
 * the log anew. If somebody was quicker, as much is folded back as can be, and the next commit tries again.
 */
export function foldLongLog(connection: Connection): void {
  try {
    const { log } = connection.prepare('PRAGMA wal_checkpoint(NOOP)').get() as { log: number }
    if (log >= WAL_PAGES) connection.prepare('PRAGMA wal_checkpoint(FULL)').get()
  } catch {
    // Everything is in the log. A fault of the disk is reported by the next write.
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
