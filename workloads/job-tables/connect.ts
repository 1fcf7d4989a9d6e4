import { UnsupportedError } from '../../src/errors.ts'
import { ANSWER_MS } from '../../src/observe/observed-mill.ts'
import { openPool } from '../database/postgres.ts'
import type { Database, Row } from './database.ts'

export interface Connected {
  readonly database: Database
  readonly schema: string
  /** The longest that a statement may take. */
  readonly answerMs: number
  /** Rejects after a second without an answer. */
  ping(): Promise<void>
  close(): Promise<void>
}

/** How a running reaper is known to the doctor and the dashboard, in `pg_stat_activity`. */
export const REAPER_SESSION = 'millrace-reaper'

interface ConnectOptions {
  /** The name of the session. */
  readonly name?: string
  /** Between two runs of a reaper its session stays, so that it can be seen. */
  readonly staysConnected?: boolean
}

/** A reaper sends one statement at a time, beside a ping. One more replaces a broken connection. */
const CONNECTIONS_MAX = 3

export async function connectTo(url: string, options: ConnectOptions = {}): Promise<Connected> {
  const [engine = ''] = url.split(':')
  if (!/^postgres(?:ql)?$/.test(engine)) {
    throw new UnsupportedError({ engine, limit: 'cannot hold job tables of your own; give a postgres:// URL' })
  }
  const { name = 'millrace-tables', staysConnected = false } = options
  const idle = staysConnected ? { idleMs: 0 } : {}
  const { pool, schema, answerMs } = await openPool(url, { name, max: CONNECTIONS_MAX, ...idle })
  const send = async (text: string, values: unknown[], timeoutMs: number): Promise<readonly Row[]> => {
    const client = await pool.connect()
    let isBroken = true
    try {
      const answer = await client.query({ text, values, query_timeout: timeoutMs })
      isBroken = false
      // A migration sends several statements in one text. Their result is a list without rows.
      return (answer.rows ?? []).filter(isRow)
    } finally {
      client.release(isBroken)
    }
  }
  return {
    database: { query: async (text, values = []) => ({ rows: await send(text, values, answerMs) }) },
    ping: async () => void (await send('select 1', [], ANSWER_MS)),
    schema,
    answerMs,
    close: () => pool.end(),
  }
}

function isRow(row: unknown): row is Row {
  return typeof row === 'object' && row !== null
}
