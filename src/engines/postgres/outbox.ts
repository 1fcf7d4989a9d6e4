import type { OutboundJob, Outbox } from '../../engine/outbox.ts'
import type { NewJob } from '../../job/job.ts'
import { arrayOf } from './arrays.ts'
import type { PostgresCore } from './core.ts'
import type { Queries } from './database.ts'
import { ADD_OUTBOUND, FIRST_OUTBOUND, REMOVE_OUTBOUND, SIZE_OUTBOUND } from './outbox-statements.ts'
import type { Within } from './within.ts'

export function createOutbox(core: PostgresCore, transactions: Within): Outbox {
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
