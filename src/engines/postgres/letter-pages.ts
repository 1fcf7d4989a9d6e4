import type { DeadLetterFilter, LetterCauses } from '../../engine/dead-letters.ts'
import { toIso } from '../../time/iso.ts'
import { type CauseRow, toLetterCauses } from '../sql/dead-letters.ts'
import type { Queries } from './database.ts'
import { ms, NOW } from './fragments.ts'
import type { Names } from './names.ts'

export const DEAD = `status = 'failed' AND ended IS NULL`

/** Newest first. A null parameter filters nothing. */
export const listDead = (columns: string, { jobs }: Names): string => `
SELECT ${columns} FROM ${jobs} AS job
WHERE ${DEAD} AND type IS NOT NULL AND ($2::text IS NULL OR type = $2)
  AND ($3::timestamptz IS NULL OR completed_at >= $3) AND ($4::timestamptz IS NULL OR completed_at < $4)
  AND ($5::timestamptz IS NULL OR (completed_at, id::text) < ($5, $6::text))
ORDER BY completed_at DESC, job.id::text DESC LIMIT $7`

export function boundsOf(filter: DeadLetterFilter): (string | number | null)[] {
  const time = (ms: number | undefined): string | null => (ms === undefined ? null : toIso(ms))
  return [
    filter.type ?? null,
    time(filter.sinceMs),
    time(filter.beforeMs),
    time(filter.after?.completedAtMs),
    filter.after?.id ?? null,
    // Postgres takes null as no limit.
    Number.isFinite(filter.limit) ? filter.limit : null,
  ]
}

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
