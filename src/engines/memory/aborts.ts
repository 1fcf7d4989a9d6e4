/** Calls back at the first abort of any of them. Unlike AbortSignal.any it leaves nothing behind on a long-lived signal. */
export function onAbort(signals: readonly AbortSignal[], listener: () => void): () => void {
  for (const signal of signals) signal.addEventListener('abort', listener, { once: true })
  return () => {
    for (const signal of signals) signal.removeEventListener('abort', listener)
  }
}
