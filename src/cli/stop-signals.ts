import { backgroundClock, type Clock } from '../time/clock.ts'

/** npm passes Ctrl-C on to a process that the terminal has told already: two signals so close are one wish. */
const ECHO_MS = 1_000

/**
 * Calls `onFirst` at the first SIGTERM or SIGINT and `onSecond` when somebody insists. As long as it listens, no signal
 * ends the process by itself. Returns the unsubscriber, after which the echo of a signal that was heard is still ignored:
 * whoever stops at once would otherwise be killed by it while it closes.
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
 * How a command that runs long hears that it is to stop. It listens from the moment that it is made, which is before the
 * command's first wait: a signal that comes while modules are loaded, a store is opened or a group is joined is heard too.
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

  /** Aborts at the first signal; its name is the reason. */
  get signal(): AbortSignal {
    return this.#stopping.signal
  }

  /** What to do when somebody does not want to wait for the stop. */
  onInsist(act: () => void): void {
    this.#onInsist = act
  }

  /** What `work` brings; null if the stop comes first, and then what it brings late is undone. */
  async unlessStopped<Value>(work: Promise<Value>, undo: (late: Value) => unknown = () => {}): Promise<Value | null> {
    const { promise: stopped, resolve } = Promise.withResolvers<null>()
    const onStop = (): void => resolve(null)
    this.signal.addEventListener('abort', onStop, { once: true })
    if (this.signal.aborted) onStop()
    try {
      return await Promise.race([stopped, work])
    } finally {
      this.signal.removeEventListener('abort', onStop)
      // Whoever has stopped does not hear how it ends.
      if (this.signal.aborted) void work.then(undo).catch(() => {})
    }
  }

  close(): void {
    this.#unsubscribe()
  }
}
