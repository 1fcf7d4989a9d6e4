/** The statements of the outbox. */
import type { Names } from './names.ts'
import { ms, NOW } from './statements.ts'

export const ADD_OUTBOUND = ({ outbox }: Names): string => `
INSERT INTO ${outbox} (outbox, job, added_at)
SELECT $2::text, added.job, ${NOW} FROM unnest($3::text[]) WITH ORDINALITY AS added (job, place) ORDER BY place`

/** The first one comes whatever its size. */
export const FIRST_OUTBOUND = ({ outbox }: Names): string => `
SELECT seq::float8 AS seq, job, ${NOW} AS now FROM (
  SELECT seq, job, octet_length(job) AS bytes, sum(octet_length(job)) OVER (ORDER BY seq) AS total
  FROM (SELECT seq, job FROM ${outbox} WHERE outbox = $2 ORDER BY seq LIMIT $3) AS few
) AS counted
WHERE total <= $4::bigint OR total = bytes
ORDER BY seq`

export const REMOVE_OUTBOUND = ({ outbox }: Names): string => `
DELETE FROM ${outbox} WHERE outbox = $2 AND seq = ANY ($3::bigint[]) AND ${NOW} IS NOT NULL`

export const SIZE_OUTBOUND = ({ outbox }: Names): string => `
SELECT count(*)::int AS jobs, ${ms('min(added_at)')} AS oldest_ms, ${NOW} AS now FROM ${outbox} WHERE outbox = $2`

export const LIST_OUTBOXES = ({ outbox }: Names): string => `
SELECT outbox AS name, count(*)::int AS jobs, ${ms(`${NOW} - min(added_at)`)} AS "oldestMs" FROM ${outbox} GROUP BY outbox ORDER BY outbox`
