import type { Clock } from './clock.ts'

/** Waits for `done`, but no longer than `ms`. True when it came in time; a rejection counts as done. */
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
