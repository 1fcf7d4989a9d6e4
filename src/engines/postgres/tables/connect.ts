import { loadPg } from '../driver.ts'
import { parseUrl } from '../options.ts'
import type { Database, Row } from './database.ts'

/** A database reached by its URL, for the reaper as a program of its own. */
export interface Connected {
  readonly database: Database
  readonly schema: string
  close(): Promise<void>
}

/** A reaper sends one statement at a time; the second connection is for what stays behind of a broken first. */
const CONNECTIONS_MAX = 2
const CONNECT_MS = 5_000
/** After this, a connection that no longer answers is given up, also when the network dropped it in silence. */
const ANSWER_MS = 30_000

export async function connectTo(url: string): Promise<Connected> {
  const { connectionString, schema, pooled } = parseUrl(url)
  const { createPool } = await loadPg()
  const pool = createPool(
    {
      connectionString,
      application_name: 'millrace-reaper',
      connectionTimeoutMillis: CONNECT_MS,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      // A transaction pooler takes no startup parameters.
      ...(pooled ? {} : { statement_timeout: ANSWER_MS }),
    },
    CONNECTIONS_MAX,
  )
  // The next statement finds out by itself; without a listener, an idle connection that ends would end the process.
  pool.on('error', () => {})
  const query: Database['query'] = async (text, values = []) => {
    const client = await pool.connect()
    let isBroken = true
    try {
      const answer = await client.query({ text, values, query_timeout: ANSWER_MS })
      isBroken = false
      // Several statements in one text, as a migration sends, are answered by a list, which has no rows.
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
