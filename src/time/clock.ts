/**
 * The only source of time. Everything that reads the hour or waits takes a Clock,
 * so a test can move days in a millisecond (I11).
 */
export interface Clock {
  /** Wall-clock time in milliseconds since the epoch: for stored times. */
  nowMs(): number
  /** A monotonic reading in milliseconds: for durations, never stored. */
  monotonicMs(): number
  /** Resolves after `ms`, or as soon as `signal` aborts. Never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /** Calls `run` once after `ms`, unless the returned function was called first. */
  after(ms: number, run: () => void): () => void
}

/** setTimeout fires at once above this, so longer waits are slept in pieces. */
const TIMER_MS_MAX = 2 ** 31 - 1

function startTimer(ms: number, run: () => void, keepsAlive: boolean): () => void {
  let timer: NodeJS.Timeout
  const arm = (leftMs: number): void => {
    const pieceMs = Math.min(leftMs, TIMER_MS_MAX)
    timer = setTimeout(() => (leftMs > pieceMs ? arm(leftMs - pieceMs) : run()), pieceMs)
    if (!keepsAlive) timer.unref()
  }
  // What is due already is due now; Node warns of a negative time.
  arm(Math.max(0, ms))
  return () => clearTimeout(timer)
}

/** Turns a timer into a wait that an AbortSignal can cut short; any Clock may build its `sleep` from its `after`. */
export function sleepWith(start: Clock['after'], ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted === true) return Promise.resolve()
  return new Promise((resolve) => {
    const finish = (): void => {
      cancel()
      signal?.removeEventListener('abort', finish)
      resolve()
    }
    const cancel = start(ms, finish)
    signal?.addEventListener('abort', finish, { once: true })
  })
}

function realClock(keepsAlive: boolean): Clock {
  const after = (ms: number, run: () => void): (() => void) => startTimer(ms, run, keepsAlive)
  return Object.freeze({
    nowMs: () => Date.now(),
    monotonicMs: () => performance.now(),
    sleep: (ms: number, signal?: AbortSignal) => sleepWith(after, ms, signal),
    after,
  })
}

export const systemClock: Clock = realClock(true)

/** Long waits that may end sooner end at multiples of this; the rest of a timer that fires a little early counts as none. */
const SHARED_MS = 5_000
const EARLY_MS = 5

/**
 * `ms` or less, and at most 5 ms more, so that several waits of a process end together: what an idle process costs is mostly how often it wakes up.
 * For looks that are repeated. Waits below 5 s stay as they are, unless `stepMs` says at multiples of what they end.
 */
export function sharedWait(clock: Pick<Clock, 'monotonicMs'>, ms: number, stepMs: number = SHARED_MS): number {
  if (ms < stepMs) return ms
  const nowMs = clock.monotonicMs()
  return Math.floor((nowMs + ms + EARLY_MS) / stepMs) * stepMs - nowMs
}

/** When the `monotonicMs` of this thread was 0, on a scale that all threads of the process share. */
export const THREAD_STARTED_MS: number = Number(process.hrtime.bigint()) / 1e6 - performance.now()

/** The same time, but what waits on it does not keep the process alive: for work that a process may leave behind. */
export const backgroundClock: Clock = realClock(false)

/**
 * Looks at something outside this process every `ms` of real time, whatever clock is injected; together with other waits
 * where `ms` is long. The timer alone does not keep the process alive. Returns the stopper.
 */
export function watchEvery(ms: number, look: () => void): () => void {
  if (ms >= SHARED_MS) {
    let cancel = () => {}
    const again = (): void => {
      cancel = backgroundClock.after(sharedWait(backgroundClock, ms), () => {
        again()
        look()
      })
    }
    again()
    return () => cancel()
  }
  const timer = setInterval(look, ms)
  timer.unref()
  return () => clearInterval(timer)
}

/** Smaller differences are corrections of a time server, or leap seconds; leases are not counted more exactly than that. */
export const STEP_MS_MIN = 1_000

/**
 * Notices that the wall clock was set: it has then moved against the monotonic clock, which nobody can set. A machine
 * that was suspended looks the same, because the monotonic clock stands still meanwhile.
 */
export class ClockSteps {
  readonly #clock: Clock
  #offsetMs: number

  constructor(clock: Clock) {
    this.#clock = clock
    this.#offsetMs = clock.nowMs() - clock.monotonicMs()
  }

  /** By how much the clock was set since the last call, negative for back; 0 when it was not. */
  take(): number {
    const offsetMs = this.#clock.nowMs() - this.#clock.monotonicMs()
    const stepMs = offsetMs - this.#offsetMs
    if (Math.abs(stepMs) < STEP_MS_MIN) return 0
    this.#offsetMs = offsetMs
    return stepMs
  }
}

/**
 * One reading of a clock for everything that happens at once: the callbacks that run now and those already queued behind
 * them. A batch of a hundred events reads the clock once, where a reading costs more than counting an event.
 */
export class Moment {
  readonly #read: () => number
  readonly #forget: () => void
  #ms: number | null = null

  /** `read` is a clock's `nowMs` or `monotonicMs`. */
  constructor(read: () => number) {
    this.#read = read
    this.#forget = () => {
      this.#ms = null
    }
  }

  get ms(): number {
    if (this.#ms !== null) return this.#ms
    const ms = this.#read()
    this.#ms = ms
    PASSED.then(this.#forget)
    return ms
  }
}

const PASSED = Promise.resolve()
