import { historyDetail, type JobEvent, type JobView, newestHistory } from '../../job/job.ts'

export interface StoredEvent extends Omit<JobEvent, 'jobId'> {
  /** `startedAtMs` in it tells when the start began that this event ended. */
  readonly detail: Readonly<Record<string, unknown>> | null
}

/**
 * A job's history, oldest first. Its row shows when it was enqueued, started last and completed, so these events are not
 * stored: three more inserts per job would slow down the path that every job takes.
 */
export function historyOf(
  job: JobView,
  completedBy: string | null,
  stored: readonly StoredEvent[],
): readonly JobEvent[] {
  const events: JobEvent[] = []
  const add = (event: Omit<JobEvent, 'jobId'>): void => void events.push({ jobId: job.id, ...event })
  const addStart = (atMs: unknown, attempt: number, worker: string | null): void => {
    // An expired lease tells its start twice: when a reaper claimed it and when it was settled.
    if (typeof atMs === 'number' && events.at(-1)?.name !== 'expired')
      add({ atMs, name: 'started', attempt, worker, detail: null })
  }
  add({ atMs: job.createdAtMs, name: 'enqueued', attempt: 0, worker: null, detail: null })
  for (const { name, atMs, attempt, worker, detail } of stored) {
    addStart(detail?.startedAtMs, attempt, worker)
    add({ atMs, name, attempt, worker, detail: historyDetail(detail) })
  }
  const { state, attempt, startedAtMs, completedAtMs, durationMs } = job
  const isCompleted = state === 'completed'
  const worker = isCompleted ? completedBy : job.leaseOwner
  if (isCompleted || state === 'in_progress') addStart(startedAtMs, attempt, worker)
  if (isCompleted && completedAtMs !== null)
    add({ atMs: completedAtMs, name: 'completed', attempt, worker, detail: { durationMs } })
  return newestHistory(events)
}
