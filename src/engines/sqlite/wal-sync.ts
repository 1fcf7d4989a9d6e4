import { close, fdatasync, open } from 'node:fs'
import { promisify } from 'node:util'

const openFile = promisify(open)
const syncFile = promisify(fdatasync)
const closeFile = promisify(close)

/**
 * Syncs commits to the disk without blocking the event loop and without holding the write lock.
 *
 * The connection runs with synchronous=NORMAL, so a commit only writes to the WAL. A call is acknowledged when an
 * fdatasync of the WAL that began after its commit has ended. That is what synchronous=FULL promises, but here the sync
 * runs in a thread of libuv while handlers run and other processes write. SQLite keeps the WAL file as long as a
 * connection is open. Its locks are on other files, so closing this descriptor drops none.
 */
export class WalSync {
  readonly #file: string
  #descriptor: number | null = null
  #running: Promise<void> | null = null
  #next: Promise<void> | null = null

  constructor(databaseFile: string) {
    this.#file = `${databaseFile}-wal`
  }

  /** Resolves when everything committed before this call is on the disk. Calls made while a sync runs share the next one. */
  sync(): Promise<void> {
    if (this.#running === null) return this.#begin()
    this.#next ??= this.#running.then(
      () => this.#begin(),
      () => this.#begin(),
    )
    return this.#next
  }

  #begin(): Promise<void> {
    this.#next = null
    const running = this.#sync().finally(() => {
      if (this.#running === running) this.#running = null
    })
    this.#running = running
    return running
  }

  async #sync(): Promise<void> {
    this.#descriptor ??= await openFile(this.#file, 'r+')
    await syncFile(this.#descriptor)
  }

  async close(): Promise<void> {
    await (this.#next ?? this.#running)?.catch(() => undefined)
    if (this.#descriptor !== null) await closeFile(this.#descriptor)
    this.#descriptor = null
  }
}
