import type { DeadLetterFilter, LetterCauses } from '../../engine/dead-letters.ts'
import { type CauseRow, toLetterCauses } from '../sql/dead-letters.ts'
import type { Queries } from './database.ts'
import { boundsOf, listDead } from './dead-letters.ts'
import { ms, NOW } from './fragments.ts'
import type { Names } from './names.ts'

const LETTER = `type, completed_at, fail_code, fail_reason, error_record::text AS record,
  (${ms('coalesce(completed_at, updated_at)')}::text || '|' || id::text) COLLATE "C" AS died`

/** The letters of a page by their errors. Records are read once for all letters that have the same. Other programs write only the short form. */
export const COUNT_CAUSES = (names: Names): string => `
SELECT type, CASE WHEN record IS NULL THEN 'Error' ELSE coalesce(record::json ->> 'name', '') END AS name,
  CASE WHEN record IS NULL THEN fail_code ELSE record::json ->> 'code' END AS code,
  CASE WHEN record IS NULL THEN coalesce(fail_reason, fail_code) ELSE record::json ->> 'message' END AS message,
  count, oldest, newest, last, ${NOW} AS now
FROM (
  SELECT type, fail_code, fail_reason, record, count(*)::int AS count, min(died) AS oldest, max(died) AS newest,
    min(died) FILTER (WHERE completed_at IS NOT NULL) AS last
  FROM (${listDead(LETTER, names)}) AS letters GROUP BY type, fail_code, fail_reason, record) AS causes`

export async function countCauses(queries: Queries, filter: DeadLetterFilter): Promise<LetterCauses> {
  return toLetterCauses(await queries.rows<CauseRow>(COUNT_CAUSES, ...boundsOf(filter)), filter.limit, Number)
}
