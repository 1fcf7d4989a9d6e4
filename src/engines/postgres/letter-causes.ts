import type { DeadLetterFilter, LetterCauses } from '../../engine/dead-letters.ts'
import { type CauseRow, toLetterCauses } from '../sql/dead-letters.ts'
import type { Queries } from './database.ts'
import { boundsOf, listDead } from './dead-letters.ts'
import { ms, NOW } from './fragments.ts'
import type { Names } from './names.ts'

function placeAt(time: string): string {
  return `(${ms(time)}::text || '|' || id::text) COLLATE "C"`
}

/** Other programs write only the short form. */
const LETTER = `type, ${placeAt('coalesce(completed_at, updated_at)')} AS died, ${placeAt('completed_at')} AS place,
  CASE WHEN error_record IS NULL THEN 'Error' ELSE coalesce(error_record ->> 'name', '') END AS name,
  CASE WHEN error_record IS NULL THEN fail_code ELSE error_record ->> 'code' END AS code,
  CASE WHEN error_record IS NULL THEN coalesce(fail_reason, fail_code) ELSE error_record ->> 'message' END AS message`

/** The letters of a page by their errors, without the stacks, which may differ for one error. */
export const COUNT_CAUSES = (names: Names): string => `
SELECT type, name, code, message, count(*)::int AS count, min(died) AS oldest, max(died) AS newest, min(place) AS last,
  ${NOW} AS now
FROM (${listDead(LETTER, names)}) AS letters GROUP BY type, name, code, message`

export async function countCauses(queries: Queries, filter: DeadLetterFilter): Promise<LetterCauses> {
  return toLetterCauses(await queries.rows<CauseRow>(COUNT_CAUSES, ...boundsOf(filter)), filter.limit, Number)
}
