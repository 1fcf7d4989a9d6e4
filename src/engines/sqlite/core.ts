import { RemovedJobViews } from '../../engine/wait-until-finished.ts'
import { ClosedError, type MillraceError } from '../../errors.ts'
import { type Clock, systemClock } from '../../time/clock.ts'
import { StoredClock } from './clock.ts'
import { type Connection, fileOf } from './database.ts'
import { isBusy, toEngineError } from './faults.ts'
import { FileWatch } from './file-watch.ts'
import { Wakeups } from './wakeups.ts'
import { WalSync } from './wal-sync.ts'
import { Writer } from './writer.ts'

/** A read meets a lock only while another process opens or checkpoints the WAL. */
const READ_TRIES = 200

interface CoreConsumer {
  close(): Promise<void>
  findLost(): void
}

/**
 * What the synchronous functions of this folder need. They run inside a transaction of their caller, who may block instead
 * of using the core's writer.
 */
export type SqliteStore = Pick<SqliteCore, 'connection' | 'clock' | 'removedViews'>

/** What the engine, its consumers and its facets share: one connection, one writer, one source of wake-ups. */
export class SqliteCore {
  readonly connection: Connection
  readonly clock: Clock
  readonly wakeups: Wakeups
  readonly removedViews = new RemovedJobViews()
  readonly #writer: Writer
  readonly #walSync: WalSync | null
  readonly #clockInFile: StoredClock
  #fileWatch: FileWatch | null = null
  readonly #consumers = new Set<CoreConsumer>()
  #closed = false
  #mayChangeSchema = true

  /** `walFile`: the file whose WAL is synced here; null when SQLite syncs it or no sync is needed. */
  constructor(connection: Connection, clock: Clock, walFile: string | null) {
    this.connection = connection
    this.clock = clock
    this.wakeups = new Wakeups(connection, clock, () => this.isBehind)
    this.#walSync = walFile === null ? null : new WalSync(walFile)
    const walSync = this.#walSync
    this.#clockInFile = new StoredClock(connection, clock, () => this.wakeups.notify())
    this.#writer = new Writer(connection, {
      sync: walSync === null ? null : () => walSync.sync(),
      watch: {
        allowsStatement: () => {
          this.#fileWatch?.assertSame()
          return !this.#clockInFile.isBehind
        },
        begin: () => {
          this.#fileWatch?.assertSame()
          this.#clockInFile.begin()
        },
        committed: () => this.#clockInFile.committed(),
      },
    })
  }

  /** Call once the schema exists. `mayChangeSchema`: whether Millrace may add to it. */
  async opened(mayChangeSchema: boolean): Promise<void> {
    this.#mayChangeSchema = mayChangeSchema
    await this.read('reading the clock', () => this.#clockInFile.watch())
    this.#fileWatch = new FileWatch(this.connection, fileOf(this.connection.handle))
  }

  /** Call before starting new work. Throws if the file was replaced, or migrated by a newer Millrace. */
  assertUsable(): void {
    this.#fileWatch?.assertSame()
    this.#fileWatch?.assertKnown()
  }

  get mayChangeSchema(): boolean {
    return this.#mayChangeSchema
  }

  /** Whether the clock was set and the times in the file were not moved yet. */
  get isBehind(): boolean {
    return this.#clockInFile.isBehind
  }

  /** For calls that may only read. Every write does the same first. */
  followClock(): Promise<void> {
    return this.writeVolatile('following the clock', () => {})
  }

  get claimMax(): number {
    return this.#writer.claimMax
  }

  /** Acknowledged when it is as durable as `synchronous` says. `statement`: see the writer. */
  write<T>(name: string, run: (isAlone: boolean) => T, statement: (() => T | null) | null = null): Promise<T> {
    return this.#writer.run(name, run, 'durable', statement)
  }

  /**
   * For claims, renewals and progress. A power cut ends every holder too, so losing one means at most that a start of the
   * last milliseconds is not counted. An acknowledged settle includes them.
   */
  writeVolatile<T>(name: string, run: (isAlone: boolean) => T): Promise<T> {
    return this.#writer.run(name, run, 'volatile')
  }

  /** For claims and settles: the same, and processes that compete for jobs let each other go first. */
  writeInTurn<T>(name: string, durability: 'durable' | 'volatile', run: (isAlone: boolean) => T): Promise<T> {
    return this.#writer.run(name, run, durability, null, true)
  }

  /** Synchronous, unless the database is locked for a moment: then it retries without blocking. */
  async read<T>(name: string, run: () => T): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      if (this.#closed) throw new ClosedError('the SQLite engine')
      try {
        return run()
      } catch (error) {
        if (!isBusy(error) || tries === READ_TRIES) throw toEngineError(error, name) satisfies MillraceError
        await systemClock.sleep(1)
      }
    }
  }

  /** This process changed a job's state: waiting claims look again, holders compare their leases. */
  changed(): void {
    this.wakeups.notify()
    for (const consumer of this.#consumers) consumer.findLost()
  }

  remember(consumer: CoreConsumer): void {
    this.#consumers.add(consumer)
  }

  forget(consumer: CoreConsumer): void {
    this.#consumers.delete(consumer)
  }

  /** Ends claims that wait, lets writes already made finish, and refuses new ones. */
  async close(): Promise<void> {
    await Promise.all([...this.#consumers].map((consumer) => consumer.close()))
    // Before waiting callers are woken: they look again, and must not wait on a file that is about to close.
    this.#closed = true
    this.wakeups.close()
    await this.#writer.close()
    await this.#walSync?.close()
  }
}
