import { backgroundClock, type Clock } from '../time/clock.ts'

/** npm repeats Ctrl-C to a process that already got it from the terminal: two signals this close count as one. */
const ECHO_MS = 1_000

/**
 * Calls `onFirst` at the first SIGTERM or SIGINT and `onSecond` at a later one. While it listens, no signal ends the
 * process. The returned function unsubscribes, but still ignores the echo of a signal: the echo would otherwise kill a
 * process that is closing.
 */
export function onStopSignals(
  clock: Clock,
  onFirst: (signal: NodeJS.Signals) => void,
  onSecond: (signal: NodeJS.Signals) => void,
): () => void {
  let firstAtMs: number | null = null
  let isOver = false
  const listener = (signal: NodeJS.Signals): void => {
    if (firstAtMs === null) {
      firstAtMs = clock.monotonicMs()
      onFirst(signal)
    } else if (!isOver && clock.monotonicMs() - firstAtMs > ECHO_MS) {
      onSecond(signal)
    }
  }
  process.on('SIGTERM', listener)
  process.on('SIGINT', listener)
  const detach = (): void => {
    process.off('SIGTERM', listener)
    process.off('SIGINT', listener)
  }
  return () => {
    if (firstAtMs === null) return detach()
    isOver = true
    backgroundClock.after(ECHO_MS, detach)
  }
}

/**
 * The stop of a long-running command. It listens from its construction, before the command's first wait, so a signal
 * also counts while modules load, a store opens or a group is joined.
 */
export class StopRequest {
  readonly #stopping = new AbortController()
  readonly #unsubscribe: () => void
  #onInsist: () => void = () => {}

  constructor(clock: Clock) {
    this.#unsubscribe = onStopSignals(
      clock,
      (signal) => this.#stopping.abort(signal),
      () => this.#onInsist(),
    )
  }

  /** Aborts at the first signal, with the signal's name as the reason. */
  get signal(): AbortSignal {
    return this.#stopping.signal
  }

  /** What to do at a second signal. */
  onInsist(act: () => void): void {
    this.#onInsist = act
  }

  /** The result of `work`. Null if the stop comes first; then `undo` gets the late result. */
  async unlessStopped<Value>(work: Promise<Value>, undo: (late: Value) => unknown = () => {}): Promise<Value | null> {
    const { promise: stopped, resolve } = Promise.withResolvers<null>()
    const onStop = (): void => resolve(null)
    this.signal.addEventListener('abort', onStop, { once: true })
    if (this.signal.aborted) onStop()
    try {
      return await Promise.race([stopped, work])
    } finally {
      this.signal.removeEventListener('abort', onStop)
      // After a stop, the outcome no longer matters.
      if (this.signal.aborted) void work.then(undo).catch(() => {})
    }
  }

  close(): void {
    this.#unsubscribe()
  }
}
