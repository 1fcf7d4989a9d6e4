import { historyDetail, JOB_EVENT_NAMES, type JobEvent, type JobEventName, newestHistory } from '../../job/job.ts'
import { fromIso } from '../../time/iso.ts'
import type { Queries } from './database.ts'
import { READ_EVENTS } from './inspector.ts'
import type { ViewRow } from './rows.ts'

/** What stands in `job_events`; the reaper of job tables writes no attempt and no worker. */
interface Line {
  readonly type: string
  readonly at: string
  readonly attempt?: number
  readonly worker?: string | null
  readonly details?: Readonly<Record<string, unknown>> | null
}

/** The names of job-table events in a job's history. */
const REAPED: Readonly<Record<string, JobEventName>> = {
  'reaper:requeued': 'expired',
  'reaper:failed(timeout)': 'dead',
}

function nameOf(type: string): JobEventName | null {
  return REAPED[type] ?? JOB_EVENT_NAMES.find((name) => name === type) ?? null
}

/**
 * A job's history, oldest first. What its row tells by itself (enqueued, the present start, completed) is not stored a
 * second time: three more rows per job would be as many inserts again on the path that every job takes.
 */
export async function readHistory(queries: Queries, row: ViewRow): Promise<readonly JobEvent[]> {
  const stored = await queries.rows<{ data: Line }>(READ_EVENTS, row.id)
  const events: JobEvent[] = []
  const add = (event: Omit<JobEvent, 'jobId'>): void => void events.push({ jobId: row.id, ...event })
  const addStart = (atMs: unknown, attempt: number, worker: string | null): void => {
    // An expired lease tells its start twice: when it was taken over and when it was settled.
    if (typeof atMs === 'number' && events.at(-1)?.name !== 'expired')
      add({ atMs, name: 'started', attempt, worker, detail: null })
  }
  add({ atMs: row.created_ms, name: 'enqueued', attempt: 0, worker: null, detail: null })
  for (const { data } of stored) {
    const name = nameOf(data.type)
    if (name === null) continue
    const { attempt = row.attempt_count, worker = null, details } = data
    addStart(details?.startedAtMs, attempt, worker)
    add({ atMs: fromIso(data.at), name, attempt, worker, detail: historyDetail(details) })
  }
  const completed = row.status === 'completed'
  const worker = completed ? row.completed_by : row.locked_by
  if (completed || row.status === 'processing') addStart(row.started_ms, row.attempt_count, worker)
  if (completed && row.completed_ms !== null) {
    const detail = { durationMs: row.duration_ms }
    add({ atMs: row.completed_ms, name: 'completed', attempt: row.attempt_count, worker, detail })
  }
  return newestHistory(events)
}
