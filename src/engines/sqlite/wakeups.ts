import { backgroundClock, type Clock, systemClock, watchEvery } from '../../time/clock.ts'
import { Waiters } from '../sql/waiters.ts'
import { type Connection, fileOf } from './database.ts'
import { FileNotices } from './file-notices.ts'

/** How often data_version is read while a caller waits and the file changed just now. */
const ACTIVE_MS = 3
/** … and after QUIET_AFTER_MS without a change, where the file system sends no notices. This costs 1.7 percent of a core. */
const QUIET_MS = 20
const QUIET_AFTER_MS = 1_000
/** … and where it does, after LISTEN_AFTER_MS, in case one is missing. */
const SAFETY_MS = 1_000
const LISTEN_AFTER_MS = 30
/** The notice of a write of our own comes within this. */
const OWN_MS = 50
/** … and while no caller waits but leases are held: soon enough to notice a cancellation. */
const WATCH_MS = 100

const DATA_VERSION = 'PRAGMA data_version'

type Listener = () => void

/**
 * Wakes callers that wait when the database has changed. This process calls `notify`; changes of other processes show in
 * PRAGMA data_version, which reads shared memory and takes no lock. It is read often while the file changes. Once the file is
 * quiet, the next write to its WAL sends a notice. It comes before the commit, so it only begins the frequent reading.
 */
export class Wakeups {
  readonly #connection: Connection
  readonly #waiters: Waiters
  readonly #watching = new Set<Listener>()
  readonly #notices: FileNotices
  readonly #isBehind: () => boolean
  /** The version seen last. It is not refreshed when a wait begins: a change just before it must still wake. */
  #version: number | null = -1
  #changedAtMs = 0
  #isNoticed = false
  /** Until when a notice may be of a write of our own that nobody waits for. */
  #ownUntilMs = 0
  #cancelCheck: () => void = () => {}
  #intervalMs = 0
  #stop: () => void = () => {}

  /** `isBehind`: whether times of the file have to be moved with the clock, for which callers that wait are woken. */
  constructor(connection: Connection, clock: Clock, isBehind: () => boolean = () => false) {
    this.#connection = connection
    this.#isBehind = isBehind
    this.#waiters = new Waiters(clock, () => this.#tune())
    const file = fileOf(connection.handle)
    this.#notices = new FileNotices(file === '' ? '' : `${file}-wal`, () => this.#notice())
  }

  /** A change that this process made. Callers that wait look again. */
  notify(): void {
    this.#changedAtMs = systemClock.monotonicMs()
    this.#waiters.wake()
  }

  /** This process wrote what no caller waits for, such as a heartbeat. The notice of it begins no frequent reading. */
  wrote(): void {
    if (this.#notices.isListening) this.#ownUntilMs = systemClock.monotonicMs() + OWN_MS
  }

  /** Resolves on the next change, after `ms` of the injected clock, or when `signal` aborts. */
  wait(ms: number, signal: AbortSignal): Promise<void> {
    return this.#waiters.wait(ms, signal)
  }

  /** Calls `listener` after every change made by another process, until the returned function is called. */
  watch(listener: Listener): () => void {
    this.#watching.add(listener)
    this.#tune()
    return () => {
      this.#watching.delete(listener)
      this.#tune()
    }
  }

  close(): void {
    this.#cancelCheck()
    this.#watching.clear()
    this.#waiters.close()
    this.#notices.mute()
  }

  /** The commit that follows is not visible yet, so this is followed by frequent looks. */
  #notice(): void {
    const isOwn = systemClock.monotonicMs() < this.#ownUntilMs
    this.#ownUntilMs = 0
    if (isOwn && this.#notices.listen()) {
      this.#look('first')
      // Another process may have been writing when this began to listen again, and have committed since.
      this.#cancelCheck()
      this.#cancelCheck = backgroundClock.after(LISTEN_AFTER_MS, () => this.#look('first'))
      return
    }
    this.#isNoticed = true
    this.#changedAtMs = systemClock.monotonicMs()
    this.#look()
  }

  /** The timer runs only while a caller waits or watches. */
  #tune(): void {
    const wantedMs = this.#wantedMs()
    if (wantedMs === this.#intervalMs) return
    this.#stop()
    this.#intervalMs = wantedMs
    this.#stop = wantedMs === 0 ? () => {} : watchEvery(wantedMs, () => this.#look())
  }

  #wantedMs(): number {
    if (this.#waiters.isEmpty) return this.#watching.size === 0 ? 0 : WATCH_MS
    const quietForMs = systemClock.monotonicMs() - this.#changedAtMs
    if (quietForMs < LISTEN_AFTER_MS) return ACTIVE_MS
    // What was written just before is not noticed, so it is looked for once more.
    if (this.#notices.listen()) setImmediate(() => this.#look('first'))
    if (this.#notices.areTrusted && this.#notices.isListening) return SAFETY_MS
    return quietForMs < QUIET_AFTER_MS ? ACTIVE_MS : QUIET_MS
  }

  /** Runs from a timer, so it must not throw: an uncaught error would end the process. */
  #look(since: 'first' | 'last' = 'last'): void {
    const version = this.#read()
    // A file that can no longer be read wakes every caller once. Their own calls meet the error and report it.
    if (version !== this.#version) {
      this.#version = version
      // A notice that is on its way arrives before the callback.
      if (since === 'last' && this.#notices.isListening) setImmediate(() => this.#notices.expected())
      if (this.#isNoticed) this.#notices.kept()
      this.#isNoticed = false
      this.notify()
      for (const listener of [...this.#watching]) listener()
    } else if (this.#isBehind()) this.#waiters.wake()
    this.#tune()
  }

  /** Null when the file cannot be read, for example after the user closed their own handle. */
  #read(): number | null {
    try {
      return (this.#connection.prepare(DATA_VERSION).get() as { data_version: number }).data_version
    } catch {
      return null
    }
  }
}
