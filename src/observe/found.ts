import type { Clock } from '../time/clock.ts'
import { within } from '../time/wait.ts'
import { errorText } from './error-text.ts'

/** The longest that a health check, a scrape or a beat waits for a store. */
export const ANSWER_MS = 1_000

/** What was found, or why it could not be read. */
export type Found<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: string }

/** What `read` returns within a second. Never rejects. */
export async function findWithin<T>(clock: Clock, what: string, read: () => Promise<T>): Promise<Found<T>> {
  try {
    return { ok: true, value: await within(clock, ANSWER_MS, what, read) }
  } catch (error) {
    return { ok: false, error: errorText(error) }
  }
}
