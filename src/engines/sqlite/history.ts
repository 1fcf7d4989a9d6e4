import { HISTORY_MAX, type JobEvent, type JobEventName } from '../../job/job.ts'
import { fromIso, toIso } from '../../time/iso.ts'
import { historyOf, type StoredEvent } from '../sql/history.ts'
import type { Connection } from './database.ts'
import { parse, toView, type ViewRow } from './rows.ts'

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

export function readHistory(connection: Connection, row: ViewRow): readonly JobEvent[] {
  const rows = connection.prepare(READ_EVENTS).all({ id: row.id }) as unknown[] as EventRow[]
  const stored = rows.map(
    ({ at, name, attempt, worker, detail }): StoredEvent => ({
      atMs: fromIso(at),
      name,
      attempt,
      worker,
      detail: parse<StoredEvent['detail']>(detail, null),
    }),
  )
  return historyOf(toView(row), row.completed_by, stored)
}
