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
