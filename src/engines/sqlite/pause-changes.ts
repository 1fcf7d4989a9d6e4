import { backgroundClock, systemClock } from '../../time/clock.ts'
import type { Wakeups } from './wakeups.ts'

/** However often other processes commit, pauses are read at most this often. */
const LOOK_MS = 500

type Listener = () => void

/** By handle: engines that share one do not see each other's commits as changes. */
const ofHandle = new WeakMap<object, Set<Listener>>()

/** Tells listeners to read the pauses again: when this process has changed them, and when another one has committed something. */
export class PauseChanges {
  readonly #wakeups: Pick<Wakeups, 'watch'>
  readonly #listeners: Set<Listener>

  constructor(wakeups: Pick<Wakeups, 'watch'>, handle: object) {
    this.#wakeups = wakeups
    this.#listeners = ofHandle.get(handle) ?? new Set()
    ofHandle.set(handle, this.#listeners)
  }

  onChange(listener: Listener): () => void {
    let toldAtMs = Number.NEGATIVE_INFINITY
    let cancel: (() => void) | null = null
    const tell = (): void => {
      cancel = null
      toldAtMs = systemClock.monotonicMs()
      listener()
    }
    const unwatch = this.#wakeups.watch(() => {
      cancel ??= backgroundClock.after(toldAtMs + LOOK_MS - systemClock.monotonicMs(), tell)
    })
    this.#listeners.add(listener)
    return () => {
      unwatch()
      cancel?.()
      this.#listeners.delete(listener)
    }
  }

  /** This process has set or lifted one. */
  tell(): void {
    for (const listener of [...this.#listeners]) listener()
  }
}
