import type { Names } from './names.ts'
import { jobColumns, NOW } from './statements.ts'

/** Of claims whose answer was lost: the jobs that are leased under their tokens. */
export const FIND_CLAIMED = ({ jobs }: Names): string => `
SELECT ${jobColumns('job')}, job.lease_token AS token FROM ${jobs} AS job
WHERE job.status = 'processing' AND job.lease_token = ANY ($2::text[]) AND ${NOW} IS NOT NULL
ORDER BY job.arrival`

/** What a reaper took over is expired again: the next one finds it. */
export const EXPIRE_AGAIN = ({ jobs }: Names): string => `
UPDATE ${jobs} AS job SET lease_expires_at = ${NOW}, updated_at = ${NOW}
WHERE job.status = 'processing' AND job.lease_token = ANY ($2::text[])
RETURNING job.lease_token AS token`
