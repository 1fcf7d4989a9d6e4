import { RemovedJobViews } from '../../../src/engine/wait-until-finished.ts'
import { StoredClock } from '../../../src/engines/sqlite/clock.ts'
import type { SqliteStore } from '../../../src/engines/sqlite/core.ts'
import type { SqliteDatabase } from '../../../src/engines/sqlite/database.ts'
import {
  assertVersionText,
  Connection,
  fileOf,
  inSnapshot,
  isInTransaction,
} from '../../../src/engines/sqlite/database.ts'
import { isBusy, toEngineError } from '../../../src/engines/sqlite/faults.ts'
import { FileWatch } from '../../../src/engines/sqlite/file-watch.ts'
import { applyMigrations, needsMigration } from '../../../src/engines/sqlite/migrate.ts'
import type { Clock } from '../../../src/time/clock.ts'

/** How long a call blocks while another connection holds the write lock. */
const BUSY_MS = 5_000

/**
 * The SQLite engine's store for callers that block: each call is one transaction, done when it returns. It joins a
 * transaction that is open on the handle, and then takes effect when that commits.
 */
export class SyncStore implements SqliteStore {
  readonly connection: Connection
  readonly clock: Clock
  readonly removedViews: RemovedJobViews = new RemovedJobViews()
  readonly #clockInFile: StoredClock
  readonly #file: FileWatch

  /** Creates or updates `job_queue`. */
  constructor(database: SqliteDatabase, clock: Clock) {
    this.connection = new Connection(database)
    this.clock = clock
    const { version } = database.prepare('SELECT sqlite_version() AS version').get() as { version: string }
    assertVersionText(version)
    this.#clockInFile = new StoredClock(this.connection, clock, () => {})
    this.#file = new FileWatch(this.connection, fileOf(database))
    if (this.read('checking the schema', () => needsMigration(this.connection)))
      this.write('migrating', () => applyMigrations(this.connection, clock.nowMs()))
    this.read('reading the clock', () => this.#clockInFile.watch())
  }

  /** Call before a read that depends on the time: after the clock was set, the times in the file are moved first. */
  followClock(): void {
    if (this.#clockInFile.isBehind) this.write('following the clock', () => {})
  }

  /** Committed when it returns, undone when it throws. */
  write<Answer>(during: string, run: () => Answer): Answer {
    const { handle } = this.connection
    if (isInTransaction(handle)) return this.#within(during, run)
    try {
      this.#file.assertSame()
      this.#file.assertKnown()
      this.#patiently(() => handle.exec('BEGIN IMMEDIATE'))
      this.#clockInFile.begin()
      const answer = run()
      this.#patiently(() => handle.exec('COMMIT'))
      this.#clockInFile.committed()
      return answer
    } catch (error) {
      if (isInTransaction(handle)) handle.exec('ROLLBACK')
      throw toEngineError(error, during)
    }
  }

  /** Everything that it reads is of one moment. */
  read<Answer>(during: string, run: () => Answer): Answer {
    try {
      return inSnapshot(this.connection, () => this.#patiently(run))
    } catch (error) {
      throw toEngineError(error, during)
    }
  }

  #within<Answer>(during: string, run: () => Answer): Answer {
    const { handle } = this.connection
    handle.exec('SAVEPOINT millrace_sync')
    try {
      return run()
    } catch (error) {
      handle.exec('ROLLBACK TO millrace_sync')
      throw toEngineError(error, during)
    } finally {
      handle.exec('RELEASE millrace_sync')
    }
  }

  /** The handle's own busy timeout may be 0: node:sqlite's default, and what the engine sets on a handle it shares. */
  #patiently<Answer>(run: () => Answer): Answer {
    try {
      return run()
    } catch (error) {
      if (!isBusy(error)) throw error
    }
    const { handle } = this.connection
    const { timeout } = handle.prepare('PRAGMA busy_timeout').get() as { timeout: number }
    handle.exec(`PRAGMA busy_timeout = ${BUSY_MS}`)
    try {
      return run()
    } finally {
      handle.exec(`PRAGMA busy_timeout = ${timeout}`)
    }
  }
}
