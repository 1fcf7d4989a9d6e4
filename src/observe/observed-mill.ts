import type { Engine } from '../engine/engine.ts'
import type { WithPresence } from '../engine/presence.ts'
import type { Events } from '../events.ts'
import { errorText } from '../job/error-record.ts'
import type { Clock } from '../time/clock.ts'
import { within } from '../time/wait.ts'

/** What observers need of a mill: its events, and the parts of its engine that they read. */
export interface ObservedMill<Read extends keyof Engine = keyof Engine> {
  readonly events: Events
  readonly engine: Pick<Engine, Read> & WithPresence
}

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
