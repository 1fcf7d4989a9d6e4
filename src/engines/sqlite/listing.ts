/**
 * Pages of jobs, newest first. A page costs the same at a thousand and at ten million rows: each type and state has its
 * jobs in order on one index, so the newest of all are among the newest of each.
 */
import type { JobFilter } from '../../engine/engine.ts'
import { JOB_STATES } from '../../job/states.ts'
import type { Connection } from './database.ts'
import type { ViewRow } from './rows.ts'
import { NEWEST, NEWEST_OF, PLACE_BEFORE, TYPES, VIEW_ROWS } from './statements.ts'

interface Place {
  readonly rowid: number
}

export function listRows(connection: Connection, filter: JobFilter): ViewRow[] {
  const place = placeOf(connection, filter.before)
  if (place === null) return []
  const rowids = newest(connection, filter, place)
  return connection.prepare(VIEW_ROWS).all({ rowids: JSON.stringify(rowids) }) as ViewRow[]
}

/** Null when nothing is below the job. */
function placeOf(connection: Connection, before: string | undefined): number | null {
  if (before === undefined) return Number.MAX_SAFE_INTEGER
  const found = connection.prepare(PLACE_BEFORE).get({ id: before }) as { place: number } | undefined
  return found?.place ?? null
}

function newest(connection: Connection, { state, type, limit }: JobFilter, place: number): readonly number[] {
  if (state === undefined && type === undefined) {
    return (connection.prepare(NEWEST).all({ place, limit }) as unknown as Place[]).map(({ rowid }) => rowid)
  }
  const types = type === undefined ? typesOf(connection) : [type]
  const states = state === undefined ? JOB_STATES : [state]
  const statement = connection.prepare(NEWEST_OF)
  const rowids = types.flatMap((one) =>
    states.flatMap((each) => statement.all({ type: one, state: each, place, limit }) as unknown as Place[]),
  )
  return rowids
    .map(({ rowid }) => rowid)
    .sort((a, b) => b - a)
    .slice(0, limit)
}

function typesOf(connection: Connection): readonly string[] {
  return (connection.prepare(TYPES).all() as { type: string }[]).map(({ type }) => type)
}
