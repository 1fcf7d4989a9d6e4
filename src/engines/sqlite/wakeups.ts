import { type Clock, sleepWith, systemClock, watchEvery } from '../../time/clock.ts'
import type { Connection } from './database.ts'

/** How often data_version is read while someone waits and the file has changed within the last second. */
const ACTIVE_MS = 3
/** … and when it has been quiet: an idle worker then costs about 1.7 percent of a core (bench/results/idle.json). */
const QUIET_MS = 20
/** … and when nobody waits for work but leases are held: soon enough to hear of a cancellation. */
const WATCH_MS = 100
const QUIET_AFTER_MS = 1_000

const DATA_VERSION = 'PRAGMA data_version'

type Listener = () => void

/**
 * Wakes those who wait when the database has changed. This process tells by `notify`; other processes are noticed by
 * reading PRAGMA data_version, which costs a look at shared memory and no lock.
 */
export class Wakeups {
  readonly #connection: Connection
  readonly #clock: Clock
  readonly #waiting = new Set<Listener>()
  readonly #watching = new Set<Listener>()
  /** What was seen last. It is not refreshed when a wait begins: a change just before it must still wake. */
  #version: number | null = -1
  #changedAtMs = 0
  #intervalMs = 0
  #stop: () => void = () => {}

  constructor(connection: Connection, clock: Clock) {
    this.#connection = connection
    this.#clock = clock
  }

  /** A change that this process made. Waiters look again; nobody is told what changed. */
  notify(): void {
    this.#changedAtMs = systemClock.monotonicMs()
    for (const wake of [...this.#waiting]) wake()
  }

  /** Resolves on the next change, after `ms` of the injected clock, or when `signal` aborts. */
  wait(ms: number, signal: AbortSignal): Promise<void> {
    const woken = new AbortController()
    const wake = (): void => woken.abort()
    this.#waiting.add(wake)
    this.#tune()
    const until = AbortSignal.any([signal, woken.signal])
    return sleepWith((delayMs, run) => this.#clock.after(delayMs, run), ms, until).finally(() => {
      this.#waiting.delete(wake)
      this.#tune()
    })
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
    for (const wake of [...this.#waiting]) wake()
    this.#waiting.clear()
    this.#watching.clear()
    this.#tune()
  }

  /** The interval follows who waits; with nobody there is no timer at all. */
  #tune(): void {
    const wantedMs = this.#wantedMs()
    if (wantedMs === this.#intervalMs) return
    this.#stop()
    this.#intervalMs = wantedMs
    this.#stop = wantedMs === 0 ? () => {} : watchEvery(wantedMs, () => this.#look())
  }

  #wantedMs(): number {
    if (this.#waiting.size === 0) return this.#watching.size === 0 ? 0 : WATCH_MS
    return systemClock.monotonicMs() - this.#changedAtMs < QUIET_AFTER_MS ? ACTIVE_MS : QUIET_MS
  }

  /** Runs from a timer, so it must not throw: nobody could catch it, and the process would end. */
  #look(): void {
    const version = this.#read()
    // A file that can no longer be read wakes everyone once: their own calls meet the error and report it.
    if (version !== this.#version) {
      this.#version = version
      this.notify()
      for (const listener of [...this.#watching]) listener()
    }
    this.#tune()
  }

  /** Null when the file cannot be read, such as after the user closed a handle of their own. */
  #read(): number | null {
    try {
      return (this.#connection.prepare(DATA_VERSION).get() as { data_version: number }).data_version
    } catch {
      return null
    }
  }
}
