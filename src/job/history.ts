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

/**
 * What a line says, from what an engine stored: without the start that it keeps there to tell it as a line of its own, and
 * with the error of a failure in one place on every engine.
 */
export function historyDetail(
  stored: Readonly<Record<string, unknown>> | null | undefined,
): Readonly<Record<string, unknown>> | null {
  if (stored === null || stored === undefined) return null
  const { startedAtMs: _, name, code = null, message, stack = null, ...rest } = stored
  if (typeof name === 'string' && typeof message === 'string') return { ...rest, error: { name, code, message, stack } }
  const { startedAtMs: __, ...detail } = stored
  return Object.keys(detail).length === 0 ? null : detail
}
