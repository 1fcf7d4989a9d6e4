import type { JobEvent, JobEventName } from '../../job/job.ts'
import { HISTORY_MAX, historyDetail, newestHistory } from '../../job/job.ts'
import { fromIso, toIso } from '../../time/iso.ts'
import type { Connection } from './database.ts'
import { parse, toMs, type ViewRow } from './rows.ts'

export const RECORD_EVENT = `
INSERT INTO job_events (job_id, at, name, attempt, worker, detail) VALUES (:id, :now, :name, :attempt, :worker, :detail)`

/** Removes all but the newest events of a job. */
export const TRIM_EVENTS = `
DELETE FROM job_events WHERE job_id = :id AND seq <=
  (SELECT seq FROM job_events WHERE job_id = :id ORDER BY seq DESC LIMIT 1 OFFSET :kept)`

export const READ_EVENTS = `SELECT at, name, attempt, worker, detail FROM job_events WHERE job_id = :id ORDER BY seq`

interface NewEvent {
  readonly id: string
  readonly name: JobEventName
  readonly attempt: number
  readonly worker: string | null
  readonly detail: Readonly<Record<string, unknown>> | null
}

export function recordEvent(connection: Connection, event: NewEvent, nowMs: number): void {
  connection.prepare(RECORD_EVENT).run({
    id: event.id,
    now: toIso(nowMs),
    name: event.name,
    attempt: event.attempt,
    worker: event.worker,
    detail: event.detail === null || Object.keys(event.detail).length === 0 ? null : JSON.stringify(event.detail),
  })
  if (REPEATED.has(event.name)) connection.prepare(TRIM_EVENTS).run({ id: event.id, kept: HISTORY_MAX })
}

/** Events that can happen to one job any number of times. */
const REPEATED: ReadonlySet<JobEventName> = new Set<JobEventName>(['failed', 'released', 'expired'])

interface EventRow {
  readonly at: string
  readonly name: JobEventName
  readonly attempt: number
  readonly worker: string | null
  readonly detail: string | null
}

/**
 * A job's history, oldest first. What its row tells by itself (enqueued, the present start, completed) is not stored a
 * second time: three more rows per job would be as many inserts again on the path that every job takes.
 */
export function readHistory(connection: Connection, row: ViewRow): readonly JobEvent[] {
  const stored = connection.prepare(READ_EVENTS).all({ id: row.id }) as EventRow[]
  const events: JobEvent[] = []
  const add = (event: Omit<JobEvent, 'jobId'>): void => void events.push({ jobId: row.id, ...event })
  const addStart = (atMs: unknown, attempt: number, worker: string | null): void => {
    // An expired lease tells its start twice: when it was taken over and when it was settled.
    if (typeof atMs === 'number' && events.at(-1)?.name !== 'expired')
      add({ atMs, name: 'started', attempt, worker, detail: null })
  }
  add({ atMs: fromIso(row.created_at), name: 'enqueued', attempt: 0, worker: null, detail: null })
  for (const event of stored) {
    const detail = parse<Record<string, unknown> | null>(event.detail, null)
    addStart(detail?.startedAtMs, event.attempt, event.worker)
    add({
      atMs: fromIso(event.at),
      name: event.name,
      attempt: event.attempt,
      worker: event.worker,
      detail: historyDetail(detail),
    })
  }
  const completed = row.status === 'completed'
  const worker = completed ? row.completed_by : row.lease_owner
  if (completed || row.status === 'in_progress') addStart(toMs(row.started_at), row.attempts, worker)
  const completedAtMs = toMs(row.completed_at)
  if (completed && completedAtMs !== null) {
    add({
      atMs: completedAtMs,
      name: 'completed',
      attempt: row.attempts,
      worker,
      detail: { durationMs: row.duration_ms },
    })
  }
  return newestHistory(events)
}
