/** What asks a process to stop. */
export const SIGNALS = ['SIGTERM', 'SIGINT'] as const

/**
 * Starts a worker; a signal that arrives meanwhile aborts what `start` is given. It listens before the first await: a start
 * loads the worker's code and can wait long for the store, with Kafka for a consumer group.
 */
export async function heedingSignals<Started>(
  { signals = false }: { readonly signals?: boolean },
  start: (stop: AbortSignal) => Promise<Started>,
): Promise<Started> {
  const early = new AbortController()
  const onSignal = (signal: NodeJS.Signals): void => early.abort(signal)
  if (signals) for (const signal of SIGNALS) process.on(signal, onSignal)
  try {
    return await start(early.signal)
  } finally {
    for (const signal of SIGNALS) process.removeListener(signal, onSignal)
  }
}
