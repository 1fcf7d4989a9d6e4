import type { JobEvent } from './job.ts'

/**
 * How many lines of history a job has at most. A job that is retried or deferred for weeks would otherwise grow without
 * end. The oldest go first, but for the line that tells when the job was enqueued. Engines may store fewer.
 */
export const HISTORY_MAX = 200

/** The lines that are shown, of all that a job's record tells. */
export function newestHistory(events: readonly JobEvent[]): readonly JobEvent[] {
  const [first] = events
  if (first === undefined || events.length <= HISTORY_MAX) return events
  return first.name === 'enqueued' ? [first, ...events.slice(1 - HISTORY_MAX)] : events.slice(-HISTORY_MAX)
}
