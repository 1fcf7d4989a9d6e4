import { OptionError } from '../errors.ts'
import { type Duration, parseDurationMs } from '../time/duration.ts'

/**
 * The priority that a due job counts as: one rank better for each whole `ageingMs` since its due time, 1 at best. Null:
 * no ageing. Within one priority a job that was due earlier never counts as less, so an engine needs only the first job
 * of each priority to find the most urgent one.
 */
export function effectiveRank(priority: number, waitedMs: number, ageingMs: number | null): number {
  // Also for a due time that another program wrote and that is no time: NaN has not waited.
  if (ageingMs === null || !(waitedMs >= ageingMs)) return priority
  return Math.min(priority, Math.max(1, priority - Math.floor(waitedMs / ageingMs)))
}

/** The worker's option in milliseconds; null when it is left out, which means strict priority. */
export function parseAgeingMs(ageing: Duration | undefined): number | null {
  if (ageing === undefined) return null
  const ms = parseDurationMs(ageing, 'ageing')
  if (ms < 1) throw new OptionError(`'ageing' is ${ms} ms; give at least 1 ms, or leave it out for strict priority`)
  return ms
}
