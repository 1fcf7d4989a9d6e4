/** The statements of jobs that come after others. What happens at the end of a job is in the triggers of the schema. */
import type { Names } from './names.ts'
import { given, lockOrder, NOW } from './statements.ts'

export const FIND_IDS = ({ jobs }: Names): string =>
  `SELECT id::text AS id, ${NOW} AS now FROM ${jobs} WHERE id::text = ANY ($2::text[])`

/** The lock keeps the end of a first before or after the link, never in between. */
export const AWAIT = ({ jobs }: Names): string => `
UPDATE ${jobs} AS job SET awaited = true FROM (
  SELECT id FROM ${jobs} AS one WHERE id::text = ANY ($2::text[]) AND ${NOW} IS NOT NULL ORDER BY ${lockOrder('one')} FOR UPDATE) AS first
WHERE job.id = first.id`

/** One that is not there any more holds nobody back. */
export const LINK = ({ jobs, edges }: Names): string => `
INSERT INTO ${edges} (job_id, after_id, if_dead, held)
SELECT given.job_id, given.after_id, given.if_dead, coalesce(
  first.status IN ('queued', 'processing') OR (first.status = 'failed' AND first.ended IS NULL AND given.if_dead = 'wait'), false)
FROM ${given('$2::text[]', '$3::text[]', '$4::text[]')} AS given (job_id, after_id, if_dead)
LEFT JOIN ${jobs} AS first ON first.id::text = given.after_id
WHERE ${NOW} IS NOT NULL`

export const HOLD_BACK = ({ jobs, edges }: Names): string => `
UPDATE ${jobs} AS job SET after = given.after::json,
  waiting_for = (SELECT count(*) FROM ${edges} AS edge WHERE edge.job_id = given.id AND edge.held)
FROM ${given('$2::text[]', '$3::text[]')} AS given (id, after) WHERE job.id::text = given.id AND ${NOW} IS NOT NULL`

/** A condition on `job`: one that may still run, or be replayed, comes after it and will ask for its result. */
export function isAwaited({ edges }: Names): string {
  return `(job.awaited AND EXISTS (SELECT 1 FROM ${edges} AS edge WHERE edge.after_id = job.id::text))`
}
