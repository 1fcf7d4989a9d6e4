import { JOB_EVENT_NAMES, type JobEvent, type JobEventName } from '../../job/job.ts'
import { fromIso } from '../../time/iso.ts'
import { historyOf, type StoredEvent } from '../sql/history.ts'
import type { Queries } from './database.ts'
import { NOW } from './fragments.ts'
import type { Names } from './names.ts'
import { toView, type ViewRow } from './rows.ts'

export const READ_EVENTS = ({ events }: Names): string =>
  `SELECT data, ${NOW} AS now FROM ${events} WHERE job_id::text = $2 AND coalesce(data ->> 'table', 'jobs') = 'jobs' ORDER BY seq`

/** One row of `job_events`. The reaper of the job tables writes no attempt and no worker. */
interface EventRow {
  readonly type: string
  readonly at: string
  readonly attempt?: number
  readonly worker?: string | null
  readonly details?: Readonly<Record<string, unknown>> | null
}

/** How events of the job tables are named in a job's history. */
const REAPED: Readonly<Record<string, JobEventName>> = {
  'reaper:requeued': 'expired',
  'reaper:failed(timeout)': 'dead',
}

function nameOf(type: string): JobEventName | null {
  return REAPED[type] ?? JOB_EVENT_NAMES.find((name) => name === type) ?? null
}

export async function readHistory(queries: Queries, row: ViewRow): Promise<readonly JobEvent[]> {
  const rows = await queries.rows<{ data: EventRow }>(READ_EVENTS, row.id)
  const stored = rows.flatMap(({ data }): StoredEvent[] => {
    const name = nameOf(data.type)
    if (name === null) return []
    const { at, attempt = row.attempt_count, worker = null, details = null } = data
    return [{ atMs: fromIso(at), name, attempt, worker, detail: details }]
  })
  return historyOf(toView(row), row.completed_by, stored)
}
