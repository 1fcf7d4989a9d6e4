import type { Events } from '../events.ts'
import type { Log } from '../job/definition.ts'

const nothing = (): void => {}

export const silentLog: Log = Object.freeze({ debug: nothing, info: nothing, warn: nothing, error: nothing })

/** Writes a line for each event. Returns the detacher. */
export function attachLog(_events: Events, _log: Log): () => void {
  return nothing
}
