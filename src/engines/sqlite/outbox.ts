import type { Transaction } from '../../engine/engine.ts'
import type { OutboundJob, Outbox, OutboxSize } from '../../engine/outbox.ts'
import type { NewJob } from '../../job/job.ts'
import type { SqliteCore } from './core.ts'
import type { Connection } from './database.ts'
import { toEngineError } from './faults.ts'
import { connectionWithin } from './transactions.ts'

export const ADD_OUTBOUND = `
INSERT INTO millrace_outbox (outbox, id, job, added_at_ms) VALUES (:name, :id, :job, :now)`

/** The first job is returned whatever its size. */
export const FIRST_OUTBOUND = `
SELECT seq, job FROM (
  SELECT seq, job, octet_length(job) AS bytes, sum(octet_length(job)) OVER (ORDER BY seq) AS total
  FROM (SELECT seq, job FROM millrace_outbox WHERE outbox = :name ORDER BY seq LIMIT :max)
)
WHERE total <= :bytesMax OR total = bytes
ORDER BY seq`

/** SQLite reuses the numbers of deleted rows, so the id must match too. */
export const REMOVE_OUTBOUND = `DELETE FROM millrace_outbox WHERE seq = :seq AND outbox = :name AND id = :id`

export const SIZE_OUTBOUND = `
SELECT count(*) AS jobs, min(added_at_ms) AS oldest_ms FROM millrace_outbox WHERE outbox = :name`

export const LIST_OUTBOXES = `
SELECT outbox AS name, count(*) AS jobs, :now - min(added_at_ms) AS oldestMs FROM millrace_outbox GROUP BY outbox ORDER BY outbox`

export function createOutbox(core: SqliteCore): Outbox {
  const { connection, clock } = core
  return {
    async add(name, jobs, within) {
      if (within !== undefined) return addWithin(core, { name, jobs, within })
      await core.write('outbox', () => insert(connection, { name, jobs, nowMs: clock.nowMs() }))
    },
    first: (name, limits) =>
      core.read('outbox', () => {
        const rows = connection.prepare(FIRST_OUTBOUND).all({ name, ...limits }) as { seq: number; job: string }[]
        return rows.map(({ seq, job }): OutboundJob => ({ seq, job: JSON.parse(job) }))
      }),
    remove: (name, jobs) =>
      core.write('outbox', () => {
        for (const { seq, job } of jobs) connection.prepare(REMOVE_OUTBOUND).run({ name, seq, id: job.id })
      }),
    size: (name) =>
      core.read('outbox', () => {
        const row = connection.prepare(SIZE_OUTBOUND).get({ name }) as { jobs: number; oldest_ms: number | null }
        return { jobs: row.jobs, oldestMs: row.oldest_ms } satisfies OutboxSize
      }),
  }
}

interface Adding {
  readonly name: string
  readonly jobs: readonly NewJob[]
}

function addWithin(core: SqliteCore, { within, ...adding }: Adding & { readonly within: Transaction }): void {
  const connection = connectionWithin(core, within)
  try {
    insert(connection, { ...adding, nowMs: core.clock.nowMs() })
  } catch (error) {
    throw toEngineError(error, 'enqueuing within your transaction')
  }
}

function insert(connection: Connection, { name, jobs, nowMs }: Adding & { readonly nowMs: number }): void {
  for (const job of jobs)
    connection.prepare(ADD_OUTBOUND).run({ name, id: job.id, job: JSON.stringify(job), now: nowMs })
}
