/** The statements of schedules and of the keeper's office. */

import { after, ms, NOW } from './fragments.ts'
import type { Names } from './names.ts'

const SCHEDULE = `name, revision, ${ms('next_at')} AS next_ms, body`

export const LIST_SCHEDULES = ({ schedules }: Names): string =>
  `SELECT ${SCHEDULE}, ${NOW} AS now FROM ${schedules} ORDER BY name`

export const FIND_SCHEDULE = ({ schedules }: Names): string =>
  `SELECT ${SCHEDULE}, ${NOW} AS now FROM ${schedules} WHERE name = $2`

/** No row comes back when there is one of this name. */
export const ADD_SCHEDULE = ({ schedules }: Names): string => `
INSERT INTO ${schedules} (name, revision, next_at, body) SELECT $2, $3, $4::timestamptz, $5 WHERE ${NOW} IS NOT NULL
ON CONFLICT DO NOTHING RETURNING name`

/** No row comes back when the revision is another: of two keepers that fire one tick, one succeeds. */
export const CHANGE_SCHEDULE = ({ schedules }: Names): string => `
UPDATE ${schedules} SET revision = $3, next_at = $4::timestamptz, body = $5
WHERE name = $2 AND revision = $6 AND ${NOW} IS NOT NULL RETURNING name`

export const REMOVE_SCHEDULE = ({ schedules }: Names): string =>
  `DELETE FROM ${schedules} WHERE name = $2 AND ${NOW} IS NOT NULL RETURNING name`

const TERM = `holder, term::float8 AS number, ${ms('expires_at')} - ${ms(NOW)} AS left_ms`

export const FIND_LEADER = ({ leaders }: Names): string =>
  `SELECT ${TERM} FROM ${leaders} WHERE office = $2 AND holder IS NOT NULL AND expires_at > ${NOW}`

/** An office that is free again keeps its row without a holder, so that its number goes on growing. */
export const TAKE_OFFICE = ({ leaders }: Names): string => `
INSERT INTO ${leaders} AS leader (office, holder, term, expires_at) VALUES ($2, $3, 1, ${after('$4::float8')})
ON CONFLICT (office) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at,
  term = leader.term + CASE WHEN leader.holder IS DISTINCT FROM excluded.holder THEN 1 ELSE 0 END
WHERE leader.holder IS NULL OR leader.holder = excluded.holder OR leader.expires_at <= ${NOW}
RETURNING ${TERM}`

export const RESIGN = ({ leaders }: Names): string =>
  `UPDATE ${leaders} SET holder = NULL, expires_at = ${NOW} WHERE office = $2 AND holder = $3`
