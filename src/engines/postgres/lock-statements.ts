/**
 * Locks that a batch takes before it changes anything. Everyone takes them in one order: latest keys by their names, then
 * jobs as `lockOrder` says, then idempotency keys by their names. Whoever took them as they come would lock others out.
 */
import type { Names } from './names.ts'
import { given, LIVE, lockOrder, NOW } from './statements.ts'

/** One that was never seen gets a row that every number is above. */
export const LOCK_LATEST = ({ latest }: Names): string => `
INSERT INTO ${latest} AS known (type, latest_key, seq)
SELECT DISTINCT type, latest_key, ${NEVER_SEEN} FROM ${given('$2::text[]', '$3::text[]')} AS wanted (type, latest_key)
WHERE ${NOW} IS NOT NULL ORDER BY type, latest_key
ON CONFLICT (type, latest_key) DO UPDATE SET seq = known.seq`

const NEVER_SEEN = '(-9007199254740991)::bigint'

/**
 * The jobs with these ids ($2), the live ones of these keys ($3), and the live ones of these types ($4) and latest keys
 * ($5); of these only the ones in flight if $6.
 */
export const LOCK_JOBS = ({ jobs }: Names): string => `
SELECT job.id::text AS id, ${NOW} AS now FROM ${jobs} AS job WHERE job.id IN (
  SELECT id FROM ${jobs} WHERE id::text = ANY ($2::text[])
  UNION SELECT other.id FROM ${given('$3::text[]')} AS wanted (key)
    JOIN ${jobs} AS other ON other.idempotency_key = wanted.key AND other.${LIVE}
  UNION SELECT other.id FROM ${given('$4::text[]', '$5::text[]')} AS wanted (type, latest_key)
    JOIN ${jobs} AS other ON other.type = wanted.type AND other.latest_key = wanted.latest_key AND other.${LIVE})
  AND (job.status = 'processing' OR NOT $6::boolean)
ORDER BY ${lockOrder('job')} FOR UPDATE OF job`

/** Places in the queue, for jobs that are not stored in the order in which they were given. */
export const TAKE_ARRIVALS = ({ arrivals }: Names): string => `
SELECT nextval('${arrivals.replaceAll("'", "''")}')::text AS arrival, ${NOW} AS now FROM generate_series(1, $2::int)`
