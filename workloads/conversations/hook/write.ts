/** The part of the hook that needs node:sqlite. It is loaded apart, because a Node without it must still spool. */
import { statSync } from 'node:fs'
import { isBusy, toEngineError } from '../../../src/engines/sqlite/faults.ts'
import type { Clock } from '../../../src/time/clock.ts'
import { openCurrent } from '../store/open-current.ts'
import { inTransaction } from '../store/transaction.ts'
import { type SanitizedMessage, writeMessage } from './capture.ts'

/** How soon to try again. Switching a new file to WAL fails at once instead of waiting for the lock. */
const AGAIN_MS = 5

/**
 * Hooks do not close the file: that would checkpoint and delete the WAL, which takes longer than the write. So where no worker
 * has the file open, the next hook reads the whole WAL, and a WAL of this size is emptied.
 */
const WAL_BYTES_MAX = 1_048_576

export interface WriteOptions {
  readonly clock: Pick<Clock, 'nowMs' | 'monotonicMs'>
  /** For all locks together. */
  readonly waitMs: number
}

/** Creates the file and its tables if they are missing, and tells whether it did. Throws a coded error. */
export async function writeToDatabase(
  file: string,
  message: SanitizedMessage,
  { clock, waitMs }: WriteOptions,
): Promise<{ readonly isNew: boolean }> {
  const untilMs = clock.monotonicMs() + waitMs
  for (;;) {
    try {
      return await writeOnce(file, message, clock, Math.max(0, Math.round(untilMs - clock.monotonicMs())))
    } catch (error) {
      if (!isBusy(error) || clock.monotonicMs() + AGAIN_MS > untilMs) throw toEngineError(error, 'writing a message')
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, AGAIN_MS)
    }
  }
}

async function writeOnce(
  file: string,
  message: SanitizedMessage,
  clock: WriteOptions['clock'],
  busyMs: number,
): Promise<{ readonly isNew: boolean }> {
  const nowMs = clock.nowMs()
  const current = openCurrent(file, busyMs)
  const database = current ?? (await import('../store/database.ts')).openDatabase(file, { nowMs, busyMs })
  try {
    database.exec('PRAGMA wal_autocheckpoint = 0')
    inTransaction(database, () => writeMessage(database, message, nowMs))
  } catch (error) {
    database.close()
    throw error
  }
  const bytes = statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0
  // Does nothing while others use the file: then they do it.
  if (bytes > WAL_BYTES_MAX) database.exec('PRAGMA busy_timeout = 0; PRAGMA wal_checkpoint(TRUNCATE)')
  return { isNew: current === null }
}
