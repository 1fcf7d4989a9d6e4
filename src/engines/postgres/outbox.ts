import type { OutboundJob, Outbox } from '../../engine/outbox.ts'
import type { NewJob } from '../../job/job.ts'
import type { PostgresCore } from './core.ts'
import type { Queries } from './database.ts'
import { arrayOf } from './driver.ts'
import { ms, NOW } from './fragments.ts'
import type { Names } from './names.ts'
import type { CallerTransactions } from './transactions.ts'

export const ADD_OUTBOUND = ({ outbox }: Names): string => `
INSERT INTO ${outbox} (outbox, job, added_at)
SELECT $2::text, added.job, ${NOW} FROM unnest($3::text[]) WITH ORDINALITY AS added (job, place) ORDER BY place`

/** The first job is returned whatever its size. */
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

export function createOutbox(core: PostgresCore, transactions: CallerTransactions): Outbox {
  return {
    async add(name, jobs, within) {
      if (within !== undefined) return transactions.run(core, within, (theirs) => insert(theirs, name, jobs))
      await core.call('outbox', (database) => insert(database, name, jobs))
    },
    first: (name, { max, bytesMax }) =>
      core.call('outbox', async (database) => {
        const rows = await database.rows<{ seq: number; job: string }>(FIRST_OUTBOUND, name, max, bytesMax)
        return rows.map(({ seq, job }): OutboundJob => ({ seq, job: JSON.parse(job) }))
      }),
    async remove(name, jobs) {
      const gone = jobs.map(({ seq }) => seq)
      await core.call('outbox', (database) => database.rows(REMOVE_OUTBOUND, name, gone))
    },
    size: (name) =>
      core.call('outbox', async (database) => {
        const [row] = await database.rows<{ jobs: number; oldest_ms: number | null }>(SIZE_OUTBOUND, name)
        return { jobs: row?.jobs ?? 0, oldestMs: row?.oldest_ms ?? null }
      }),
  }
}

async function insert(queries: Queries, name: string, jobs: readonly NewJob[]): Promise<void> {
  if (jobs.length > 0) await queries.rows(ADD_OUTBOUND, name, arrayOf(jobs.map((job) => JSON.stringify(job))))
}
