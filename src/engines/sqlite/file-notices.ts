import { type FSWatcher, watch } from 'node:fs'

/** After so many missing notices in a row the file system is not asked again. */
const MISSED_MAX = 3

/**
 * The file system's notice that a file was written. Not every file system sends one for what another process writes. So
 * notices are trusted once one came, and no longer when one is missing.
 */
export class FileNotices {
  readonly #file: string
  readonly #onNotice: () => void
  #watcher: FSWatcher | null = null
  #isProved = false
  #missed = 0

  /** `file`: empty for a database in memory, which sends none. */
  constructor(file: string, onNotice: () => void) {
    this.#file = file
    this.#onNotice = onNotice
    if (file === '') this.#missed = MISSED_MAX
  }

  get isListening(): boolean {
    return this.#watcher !== null
  }

  get areTrusted(): boolean {
    return this.#isProved && this.#missed < MISSED_MAX
  }

  /**
   * Calls `onNotice` for the next write, and for that only: a busy file sends many notices, and each costs its writer and
   * its listeners time. Returns whether it began to listen.
   */
  listen(): boolean {
    if (this.isListening || this.#missed >= MISSED_MAX) return false
    try {
      this.#watcher = watch(this.#file, { persistent: false })
      this.#watcher.on('change', (event) => this.#hear(event))
      this.#watcher.on('error', () => this.#giveUp())
      return true
    } catch {
      this.#giveUp()
      return false
    }
  }

  mute(): void {
    this.#watcher?.close()
    this.#watcher = null
  }

  /** A notice was followed by a change that another process made. */
  kept(): void {
    this.#missed = 0
  }

  /** Another process changed the file since `listen`. If this still listens, the notice of it is missing. */
  expected(): void {
    if (!this.isListening) return
    this.mute()
    this.#isProved = false
    this.#missed += 1
  }

  #hear(event: string): void {
    // A file that was renamed or deleted sends no more.
    this.#isProved = event === 'change'
    this.mute()
    this.#onNotice()
  }

  /** Perhaps the system's limit of watched files is reached. */
  #giveUp(): void {
    this.mute()
    this.#missed = MISSED_MAX
  }
}
