import { JOB_STATES, type JobState, storedAs } from '../../job/states.ts'
import type { Names } from './names.ts'
import { toStatus } from './rows.ts'

/** How a failed job ended. Must be written as in the index, or the index is not used. */
const ENDED = `coalesce(ended, '')`

/**
 * The jobs of each type and state in the order of their ids. Running jobs are few and are read by idx_jobs_status_lease, so
 * a claim writes to none of these.
 */
export function newestSql({ jobs }: Names): string {
  return `CREATE INDEX IF NOT EXISTS idx_jobs_queued ON ${jobs} (type, (id::text)) WHERE status = 'queued';
CREATE INDEX IF NOT EXISTS idx_jobs_completed ON ${jobs} (type, (id::text)) WHERE status = 'completed';
CREATE INDEX IF NOT EXISTS idx_jobs_ended ON ${jobs} (type, (${ENDED}), (id::text)) WHERE status = 'failed';`
}

/** The jobs in a state. Literals in the text, so that the indexes are used. Null: no job is stored in it. */
export function inState(state: JobState): string | null {
  const { stored, ended } = storedAs(state)
  const status = toStatus(stored)
  if (status === null) return null
  return `job.status = '${status}'${status === 'failed' ? ` AND ${ENDED} = '${ended ?? ''}'` : ''}`
}

export interface Newest {
  /** Undefined: in any. */
  readonly state: JobState | undefined
  /** The parameter that has the type; null: of any. */
  readonly type: string | null
  /** A condition on the id. */
  readonly within: (id: string) => string
  readonly limit: string
}

/**
 * The ids of the newest jobs of a type, a state, or both; of all without either. Each type and state is read from an index of
 * its own, so a page costs the same at a thousand and at ten million jobs, whatever stands before its jobs.
 */
export function newestIds({ state, type, within, limit }: Newest, { jobs }: Names): string {
  const select = (where: string): string => `SELECT job.id::text AS id FROM ${jobs} AS job
    WHERE ${where} AND ${within('job.id::text')} ORDER BY job.id::text DESC LIMIT ${limit}`
  const newestOf = (from: string): string => `SELECT found.id FROM ${from} ORDER BY found.id DESC LIMIT ${limit}`
  if (state === undefined && type === null) return select('job.type IS NOT NULL')
  if (state === undefined) {
    const states = JOB_STATES.flatMap((each) => inState(each) ?? [])
    const parts = states.map((isOf) => `(${select(`job.type = ${type} AND ${isOf}`)})`)
    return newestOf(`(${parts.join('\n  UNION ALL ')}) AS found`)
  }
  const isOf = inState(state)
  if (isOf === null) return `SELECT NULL::text AS id WHERE false`
  if (type !== null) return select(`job.type = ${type} AND ${isOf}`)
  if (state === 'in_progress') return select(`job.type IS NOT NULL AND ${isOf}`)
  return newestOf(`(${typesIn(isOf, jobs)}) AS types
  CROSS JOIN LATERAL (${select(`job.type = types.type AND ${isOf}`)}) AS found`)
}

/** The types that have such jobs, by one look at the index each. */
function typesIn(isOf: string, jobs: string): string {
  const next = (condition: string): string =>
    `SELECT job.type FROM ${jobs} AS job WHERE ${isOf} AND ${condition} ORDER BY job.type LIMIT 1`
  return `WITH RECURSIVE each(type) AS (
    (${next('job.type IS NOT NULL')})
    UNION ALL SELECT (${next('job.type > each.type')}) FROM each WHERE each.type IS NOT NULL)
  SELECT type FROM each WHERE type IS NOT NULL`
}
