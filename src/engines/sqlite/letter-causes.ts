import type { DeadLetterFilter, LetterCauses } from '../../engine/dead-letters.ts'
import { fromIso } from '../../time/iso.ts'
import { type CauseRow, toLetterCauses } from '../sql/dead-letters.ts'
import type { Connection } from './database.ts'
import { boundsOf, listDead } from './dead-letters.ts'

/** Another program may have written only the text, or what is not JSON. */
const LETTER = `id, type, error, completed_at, coalesce(completed_at, updated_at) AS at,
  CASE WHEN error IS NOT NULL AND json_valid(error_record) THEN error_record END AS record`

/** The letters of a page by their errors, without the stacks, which may differ for one error. */
export function causesOf(filter: DeadLetterFilter): string {
  return `SELECT type, iif(record IS NULL, 'Error', coalesce(record ->> '$.name', '')) AS name, record ->> '$.code' AS code,
  iif(record IS NULL, error, record ->> '$.message') AS message, count(*) AS count,
  min(at || '|' || id) AS oldest, max(at || '|' || id) AS newest, min(completed_at || '|' || id) AS last
FROM (${listDead(LETTER, filter)}) GROUP BY 1, 2, 3, 4`
}

/** Inside a read. */
export function countCauses(connection: Connection, filter: DeadLetterFilter): LetterCauses {
  const rows = connection.prepare(causesOf(filter)).all(boundsOf(filter)) as unknown[] as CauseRow[]
  return toLetterCauses(rows, filter.limit, fromIso)
}
