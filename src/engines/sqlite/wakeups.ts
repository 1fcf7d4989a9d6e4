import { type Clock, systemClock, watchEvery } from '../../time/clock.ts'
import { Waiters } from '../sql/waiters.ts'
import type { Connection } from './database.ts'

/** How often data_version is read while a caller waits and the file changed within the last second. */
const ACTIVE_MS = 3
/** … and while the file is quiet. An idle worker then costs about 1.7 percent of a core (bench/results/idle.json). */
const QUIET_MS = 20
/** … and while no caller waits but leases are held: soon enough to notice a cancellation. */
const WATCH_MS = 100
const QUIET_AFTER_MS = 1_000

const DATA_VERSION = 'PRAGMA data_version'

type Listener = () => void

/**
 * Wakes callers that wait when the database has changed. This process calls `notify`; changes of other processes show in
 * PRAGMA data_version, which reads shared memory and takes no lock.
 */
export class Wakeups {
  readonly #connection: Connection
  readonly #waiters: Waiters
  readonly #watching = new Set<Listener>()
  /** The version seen last. It is not refreshed when a wait begins: a change just before it must still wake. */
  #version: number | null = -1
  #changedAtMs = 0
  #intervalMs = 0
  #stop: () => void = () => {}

  constructor(connection: Connection, clock: Clock) {
    this.#connection = connection
    this.#waiters = new Waiters(clock, () => this.#tune())
  }

  /** A change that this process made. Callers that wait look again. */
  notify(): void {
    this.#changedAtMs = systemClock.monotonicMs()
    this.#waiters.wake()
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
    this.#watching.clear()
    this.#waiters.close()
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
    return systemClock.monotonicMs() - this.#changedAtMs < QUIET_AFTER_MS ? ACTIVE_MS : QUIET_MS
  }

  /** Runs from a timer, so it must not throw: an uncaught error would end the process. */
  #look(): void {
    const version = this.#read()
    // A file that can no longer be read wakes every caller once. Their own calls meet the error and report it.
    if (version !== this.#version) {
      this.#version = version
      this.notify()
      for (const listener of [...this.#watching]) listener()
    }
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
