import { WaitTimeoutError } from '../errors.ts'
import type { Clock } from '../time/clock.ts'

/** The longest that observing waits for a store: a check, a scrape or a beat that hangs says nothing to anybody. */
export const ANSWER_MS = 1_000

/** What `ask` answers, or a WaitTimeoutError naming `what` after `ms`. An answer that comes later is dropped. */
export async function answerWithin<T>(
  clock: Clock,
  ms: number,
  what: string,
  ask: () => T | Promise<T>,
): Promise<Awaited<T>> {
  const over = new AbortController()
  // In an async function, so that a throw is a rejection too.
  const answer = (async () => await ask())()
  const late = clock.sleep(ms, over.signal).then(() => {
    if (!over.signal.aborted) throw new WaitTimeoutError(what, ms)
    return answer
  })
  try {
    return await Promise.race([answer, late])
  } finally {
    over.abort()
    // Whichever lost the race may still reject, and nobody listens to it.
    late.catch(() => {})
    answer.catch(() => {})
  }
}
