import { EngineError } from '../../errors.ts'
import type { Clock } from '../../time/clock.ts'

/** What `work` brings, if it does within `ms`. The client itself would wait for a broker that is away for much longer. */
export async function within<Value>(
  clock: Clock,
  ms: number,
  work: Promise<Value>,
  what = 'is the broker there?',
): Promise<Value> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const cancel = clock.after(ms, () =>
    reject(new EngineError('ERR_STORAGE_BUSY', `Kafka has not answered within ${ms} ms; ${what}`)),
  )
  // Whoever has stopped waiting does not hear how it ends.
  work.catch(() => {})
  try {
    return await Promise.race([work, late])
  } finally {
    cancel()
  }
}

/** Whether the leases still hold is unknown, so nothing may be done with them and none may be called lost. */
export function unheard(): EngineError {
  return new EngineError(
    'ERR_STORAGE_BUSY',
    'the broker has not been heard for a session; what is held will be known then',
  )
}
