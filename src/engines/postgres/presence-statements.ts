/** The statements of presence and of pauses. */

import { after, ms, NOW } from './fragments.ts'
import type { Names } from './names.ts'

/** All types of a worker at once. */
export const BEAT = ({ presence }: Names): string => `
INSERT INTO ${presence} (worker, type, beat, beat_at, expires_at)
SELECT worker, type, beat, to_timestamp(at_ms / 1000), ${after('$2::float8')}
FROM json_to_recordset($3::json) AS said(worker text, type text, beat text, at_ms float8)
ON CONFLICT (worker, type) DO UPDATE
SET beat = excluded.beat, beat_at = excluded.beat_at, expires_at = excluded.expires_at`

export const FORGET_WORKERS = ({ presence }: Names): string =>
  `DELETE FROM ${presence} WHERE expires_at < ${after('-$2::float8')}`

export const LEAVE = ({ presence }: Names): string =>
  `DELETE FROM ${presence} WHERE worker = $2 AND type = ANY($3::text[]) AND ${NOW} IS NOT NULL`

export const LIST_BEATS = ({ presence }: Names): string =>
  `SELECT worker, type, beat FROM ${presence} WHERE expires_at > ${NOW} ORDER BY worker, type`

export const LIST_SEEN = ({ presence }: Names): string => `
SELECT worker, type, ${ms('beat_at')} AS at_ms FROM ${presence}
WHERE expires_at >= ${after('-$2::float8')} ORDER BY worker, type`

/** No row comes back when it is paused already. */
export const PAUSE = ({ pauses }: Names): string => `
INSERT INTO ${pauses} (type, who, reason, since) VALUES ($2, $3, $4, ${NOW}) ON CONFLICT DO NOTHING RETURNING type`

export const RESUME = ({ pauses }: Names): string =>
  `DELETE FROM ${pauses} WHERE type = $2 AND ${NOW} IS NOT NULL RETURNING type`

export const LIST_PAUSES = ({ pauses }: Names): string =>
  `SELECT type, who, reason, ${ms('since')} AS since_ms, ${NOW} AS now FROM ${pauses} ORDER BY type`
