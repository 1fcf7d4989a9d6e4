/** The part of the hook that needs node:sqlite. It is loaded apart, because a Node without it must still spool. */
import { isBusy, toEngineError } from '../../../src/engines/sqlite/faults.ts'
import type { Clock } from '../../../src/time/clock.ts'
import { inTransaction, openDatabase } from '../store/database.ts'
import { type SanitizedMessage, writeMessage } from './capture.ts'

/** How soon to try again. Switching a new file to WAL fails at once instead of waiting for the lock. */
const AGAIN_MS = 5

/** Pages of WAL after which a commit checkpoints it. Hooks do not close the file, so each one reads what is in the WAL. */
const WAL_PAGES = 400

export interface WriteOptions {
  readonly clock: Clock
  /** For all locks together. */
  readonly waitMs: number
}

/** Creates the file and its tables if they are missing. Throws a coded error. */
export function writeToDatabase(file: string, message: SanitizedMessage, { clock, waitMs }: WriteOptions): void {
  const untilMs = clock.monotonicMs() + waitMs
  for (;;) {
    try {
      writeOnce(file, message, clock, Math.max(0, Math.round(untilMs - clock.monotonicMs())))
      return
    } catch (error) {
      if (!isBusy(error) || clock.monotonicMs() + AGAIN_MS > untilMs) throw toEngineError(error, 'writing a message')
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, AGAIN_MS)
    }
  }
}

/** Closing would checkpoint and delete the WAL, which takes longer than the write. The process ends right after it. */
function writeOnce(file: string, message: SanitizedMessage, clock: Clock, busyMs: number): void {
  const nowMs = clock.nowMs()
  const database = openDatabase(file, { nowMs, busyMs })
  try {
    database.exec(`PRAGMA wal_autocheckpoint = ${WAL_PAGES}`)
    inTransaction(database, () => writeMessage(database, message, nowMs))
  } catch (error) {
    database.close()
    throw error
  }
}
