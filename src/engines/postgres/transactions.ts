import type { Receipt, Transaction } from '../../engine/engine.ts'
import { EngineError } from '../../errors.ts'
import type { NewJob } from '../../job/job.ts'
import type { PostgresCore } from './core.ts'
import type { Database, Queries } from './database.ts'
import { isTransaction } from './driver.ts'
import { insertJobs } from './enqueue.ts'
import { NOW } from './fragments.ts'
import type { Names } from './names.ts'

/** Identifies the server, database and table that a connection writes to. */
export const IDENTIFY_TABLE = ({ jobs }: Names): string => `
SELECT ${NOW} AS now,
  concat_ws(' ', pg_postmaster_start_time(), current_database(), to_regclass('${jobs.replaceAll("'", "''")}')::oid) AS identity`

/**
 * The lock that the INSERT takes anyway. The server refuses it outside a transaction, and no other check is certain: in the
 * extended protocol a statement's time is later than that of its own transaction.
 */
export const LOCK_FOR_INSERT = ({ jobs }: Names): string => `LOCK TABLE ${jobs} IN ROW EXCLUSIVE MODE`

export class CallerTransactions {
  /** Read when opening: a caller that holds every connection of a shared pool must not wait here for one more. */
  #table: string | null = null

  async prepare(database: Database): Promise<void> {
    this.#table = await tableOf(database)
  }

  /** The jobs appear when the caller commits, and never if the caller rolls back. */
  enqueue(core: PostgresCore, jobs: readonly NewJob[], within: Transaction): Promise<readonly Receipt[]> {
    return this.run(core, within, async (theirs) => {
      if (jobs.length === 0) return []
      const receipts = await insertJobs(theirs, jobs)
      await core.channel.sendWithin(theirs)
      return receipts
    })
  }

  /** Runs `work` on the caller's connection after checking that it is in a transaction on the same database. */
  async run<Value>(core: PostgresCore, within: Transaction, work: (theirs: Queries) => Promise<Value>): Promise<Value> {
    if (!isTransaction(within)) throw refusal('must be a pg client with an open transaction')
    return core.call('enqueuing within your transaction', async (database) => {
      const theirs = database.on(within)
      await this.#assertSameTable(theirs, database)
      await assertOpen(theirs)
      return work(theirs)
    })
  }

  async #assertSameTable(theirs: Queries, database: Database): Promise<void> {
    const there = await tableOf(theirs)
    // A restarted server has another identity until it is read again.
    if (there !== this.#table) await this.prepare(database)
    if (there !== this.#table) throw refusal('is a transaction on another database; open Millrace on the same one')
  }
}

async function tableOf(queries: Queries): Promise<string | null> {
  return (await queries.rows<{ identity: string }>(IDENTIFY_TABLE))[0]?.identity ?? null
}

async function assertOpen(theirs: Queries): Promise<void> {
  try {
    await theirs.script(LOCK_FOR_INSERT)
  } catch (error) {
    if (error instanceof Error && Reflect.get(error, 'code') === NO_TRANSACTION) {
      throw refusal('has no open transaction; run BEGIN on it first')
    }
    throw error
  }
}

const NO_TRANSACTION = '25P01'

function refusal(why: string): EngineError {
  return new EngineError('ERR_STORAGE_FAILED', `'within' ${why}`)
}
