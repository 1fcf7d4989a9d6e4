import { WaitTimeoutError } from '../errors.ts'
import type { Clock } from './clock.ts'

/** Waits for `done`, at most `ms`. True if it settled in time; a rejection counts as settled. */
export async function waitAtMost(clock: Clock, ms: number, done: Promise<unknown>): Promise<boolean> {
  const over = new AbortController()
  const inTime = done.then(
    () => true,
    () => true,
  )
  const answer = await Promise.race([inTime, clock.sleep(ms, over.signal).then(() => false)])
  over.abort()
  return answer
}

/**
 * The result of `work`, if it comes within `ms`. Otherwise rejects with the given error, or with a WaitTimeoutError that
 * names `what`. A later result is dropped.
 */
export async function within<T>(
  clock: Clock,
  ms: number,
  what: string | (() => Error),
  work: () => T | Promise<T>,
): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const cancel = clock.after(ms, () => reject(typeof what === 'string' ? new WaitTimeoutError(what, ms) : what()))
  // In an async function, so that a throw becomes a rejection.
  const result = (async (): Promise<T> => work())()
  // The loser of the race may still reject.
  result.catch(() => {})
  try {
    return await Promise.race([result, late])
  } finally {
    cancel()
  }
}
