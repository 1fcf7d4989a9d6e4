import type { Transaction } from '../../engine/engine.ts'
import type { OutboundJob, Outbox, OutboxSize } from '../../engine/outbox.ts'
import type { NewJob } from '../../job/job.ts'
import type { SqliteCore } from './core.ts'
import type { Connection } from './database.ts'
import { toEngineError } from './faults.ts'
import { ADD_OUTBOUND, FIRST_OUTBOUND, REMOVE_OUTBOUND, SIZE_OUTBOUND } from './outbox-statements.ts'
import { connectionWithin } from './within.ts'

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
