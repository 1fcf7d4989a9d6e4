import { UnsupportedError } from '../../src/errors.ts'
import { openPool } from '../database/postgres.ts'
import type { Database, Row } from './database.ts'
import { migrateTables, type TablesPlan } from './migration.ts'
import { type Reaped, Reaper, type ReaperResult } from './reaper.ts'
import { type Environment, readTableSettings } from './settings.ts'

/** What `millrace reap --tables` and `millrace migrate --tables` call. */
export const jobTables = {
  reap(
    url: string,
    tables: readonly string[],
    { environment, onReaped }: { readonly environment: Environment; readonly onReaped: (reaped: Reaped) => void },
  ): Promise<ReaperResult> {
    const settings = readTableSettings(environment)
    return using(url, ({ database, schema }) => new Reaper(database, { tables, schema, settings, onReaped }).runOnce())
  },

  migrate(url: string, tables: readonly string[], { dryRun }: { readonly dryRun: boolean }): Promise<TablesPlan> {
    return using(url, ({ database, schema }) => migrateTables(database, { tables, schema, dryRun }))
  },
}

async function using<Answer>(url: string, run: (connected: Connected) => Promise<Answer>): Promise<Answer> {
  const [engine = ''] = url.split(':')
  if (!/^postgres(?:ql)?$/.test(engine)) {
    throw new UnsupportedError({ engine, limit: 'cannot hold job tables of your own; give a postgres:// URL' })
  }
  const connected = await connectTo(url)
  try {
    return await run(connected)
  } finally {
    await connected.close()
  }
}

export interface Connected {
  readonly database: Database
  readonly schema: string
  close(): Promise<void>
}

/** A reaper sends one statement at a time; the second connection replaces a broken first one. */
const CONNECTIONS_MAX = 2

export async function connectTo(url: string): Promise<Connected> {
  const { pool, schema, answerMs } = await openPool(url, { name: 'millrace-reaper', max: CONNECTIONS_MAX })
  const query: Database['query'] = async (text, values = []) => {
    const client = await pool.connect()
    let isBroken = true
    try {
      const answer = await client.query({ text, values, query_timeout: answerMs })
      isBroken = false
      // A migration sends several statements in one text. Their result is a list without rows.
      return { rows: (answer.rows ?? []).filter(isRow) }
    } finally {
      client.release(isBroken)
    }
  }
  return { database: { query }, schema, close: () => pool.end() }
}

function isRow(row: unknown): row is Row {
  return typeof row === 'object' && row !== null
}
