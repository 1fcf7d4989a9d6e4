import { type Clock, sleepWith, watchEvery } from '../../time/clock.ts'

type Listener = () => void

/** The poll is spread so that many processes do not ask at once. */
const JITTER = 0.25

/**
 * Wakes those who wait when there may be work. This process and the listening connection tell by `notify`; a poll in
 * real time is enough where neither can, for example for a row that another program inserted.
 */
export class Wakeups {
  readonly #clock: Clock
  readonly #pollMs: number
  readonly #waiting = new Set<Listener>()
  #changes = 0
  #stop: (() => void) | null = null

  constructor(clock: Clock, pollMs: number) {
    this.#clock = clock
    this.#pollMs = pollMs
  }

  /** Read it before looking at the database: a change after that is then not missed by `wait`. */
  get changes(): number {
    return this.#changes
  }

  /** Waiters look again; nobody is told what changed. */
  notify(): void {
    this.#changes += 1
    for (const wake of [...this.#waiting]) wake()
  }

  /** Resolves on a change since `seen`, at the next poll, after `ms` of the injected clock, or when `signal` aborts. */
  wait(ms: number, { seen, signal }: { readonly seen: number; readonly signal: AbortSignal }): Promise<void> {
    if (seen !== this.#changes) return Promise.resolve()
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

  close(): void {
    this.notify()
    this.#waiting.clear()
    this.#tune()
  }

  /** With nobody waiting there is no timer at all. */
  #tune(): void {
    if (this.#waiting.size === 0) {
      this.#stop?.()
      this.#stop = null
      return
    }
    const everyMs = this.#pollMs * (1 - JITTER + 2 * JITTER * Math.random())
    this.#stop ??= watchEvery(everyMs, () => this.notify())
  }
}
