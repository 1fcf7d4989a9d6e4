import { createHash } from 'node:crypto'
import type { Transaction } from '../../src/engine/engine.ts'
import { INDEXED_PLANS } from '../../src/engines/postgres/connections.ts'
import {
  isTransaction,
  loadPg,
  type PgClient,
  type PgPool,
  type PgPoolClient,
} from '../../src/engines/postgres/driver.ts'
import { isConflict, isConnectionFault, toEngineError } from '../../src/engines/postgres/faults.ts'
import { quote } from '../../src/engines/postgres/names.ts'
import { parseUrl } from '../../src/engines/postgres/options.ts'
import { Servers } from '../../src/engines/postgres/servers.ts'
import { EngineError, isMillraceError } from '../../src/errors.ts'
import { systemClock } from '../../src/time/clock.ts'
import type {
  Dialect,
  Queries,
  Row,
  Statement,
  Value,
  WorkloadDatabase,
  WorkloadTransaction,
  WriteOptions,
} from './database.ts'

export const POSTGRES: Dialect = {
  name: 'postgres',
  texts: (parameter) => `(SELECT jsonb_array_elements_text(${parameter}::jsonb))`,
  json: (parameter) => `${parameter}::jsonb`,
  forUpdate: ' FOR UPDATE',
}

const CONNECT_MS = 5_000
/** How often a transaction is repeated after a deadlock or a conflict, and the pause before. */
const CONFLICT_TRIES = 8
const CONFLICT_PAUSE_MS = 20
/** How long a repeatable write waits for a server that restarts, and the pause between two tries. */
const AWAY_MS_MAX = 10_000
const AWAY_PAUSE_MS = 200

export interface PostgresPool {
  readonly pool: PgPool
  readonly schema: string
  /** Ends a connection that no longer answers, for example after a silent network failure. */
  readonly answerMs: number
  /** Whether statements may be prepared: a transaction pooler does not keep them. */
  readonly prepare: boolean
}

interface PoolOptions {
  readonly name: string
  readonly max?: number
  readonly usesIndexes?: boolean
  /** An idle connection is closed after that; 0 keeps it. */
  readonly idleMs?: number
}

/** A pool of a mill's URL, for statements on tables that are not the engine's. */
export async function openPool(url: string, options: PoolOptions): Promise<PostgresPool> {
  const { name, max, usesIndexes = false, idleMs } = options
  const { servers, channelBinding, schema, pooled, answerMs, pool: size, prepare } = parseUrl(url)
  const { createPool } = await loadPg()
  const pool = createPool(
    {
      servers: new Servers(servers),
      channelBinding,
      application_name: name,
      connectionTimeoutMillis: CONNECT_MS,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      // A transaction pooler takes no startup parameters.
      ...(!pooled && { statement_timeout: answerMs, ...(usesIndexes && { options: INDEXED_PLANS }) }),
    },
    max ?? size,
    idleMs,
  )
  // Without listeners, a connection that ends would end the process: the pool hears of idle ones, the client of those in use.
  pool.on('error', () => {})
  pool.on('connect', (client) => void client.on('error', () => {}))
  // Only with our settings, which a pooler does not keep and options in the URL replace: otherwise a plan made for a small
  // table would stay when it has grown.
  const hasOurs = !pooled && servers.every((server) => !new URL(server).searchParams.has('options'))
  return { pool, schema, answerMs, prepare: prepare && usesIndexes && hasOurs }
}

export async function openPostgres(
  url: string,
  { usesIndexes }: { readonly usesIndexes: boolean },
): Promise<WorkloadDatabase> {
  return new PostgresTables(await openPool(url, { name: 'millrace-workloads', usesIndexes }))
}

interface Translation {
  readonly text: string
  readonly name: string
}

class PostgresTables implements WorkloadDatabase {
  readonly dialect = POSTGRES
  readonly #pool: PgPool
  readonly #schema: string
  readonly #answerMs: number
  readonly #prepare: boolean
  readonly #translations = new Map<string, Translation>()

  constructor({ pool, schema, answerMs, prepare }: PostgresPool) {
    this.#pool = pool
    this.#schema = quote(schema)
    this.#answerMs = answerMs
    this.#prepare = prepare
  }

  readonly read = (sql: string, values: readonly Value[] = []): Promise<readonly Row[]> =>
    this.#use((client) => this.#send(client, sql, values))

  async write(statements: readonly Statement[], options: WriteOptions = {}): Promise<readonly (readonly Row[])[]> {
    const untilMs = systemClock.monotonicMs() + (options.isRepeatable === true ? AWAY_MS_MAX : 0)
    for (;;) {
      try {
        return await this.#write(statements)
      } catch (error) {
        if (!isConnectionFault(causeOf(error)) || systemClock.monotonicMs() >= untilMs) throw error
        await systemClock.sleep(AWAY_PAUSE_MS * (0.5 + Math.random()))
      }
    }
  }

  async #write(statements: readonly Statement[]): Promise<readonly (readonly Row[])[]> {
    const [first, ...others] = statements
    if (first === undefined) return []
    if (others.length === 0) {
      return [await this.#use((client) => this.#send(client, first.sql, first.values))]
    }
    return this.transaction(async ({ rows }) => {
      const answers: (readonly Row[])[] = []
      for (const { sql, values } of statements) answers.push(await rows(sql, values))
      return answers
    })
  }

  transaction<Answer>(work: (transaction: WorkloadTransaction) => Promise<Answer>): Promise<Answer> {
    return this.#use(async (client) => {
      await this.#send(client, 'BEGIN ISOLATION LEVEL READ COMMITTED')
      try {
        const answer = await work({ ...this.#queries(client), within: client })
        await this.#send(client, 'COMMIT')
        return answer
      } catch (error) {
        if (!isConnectionFault(causeOf(error))) await this.#send(client, 'ROLLBACK')
        throw error
      }
    })
  }

  on(within: Transaction): Queries {
    if (!isTransaction(within)) {
      throw new EngineError(
        'ERR_STORAGE_FAILED',
        `'within' must be a pg client with an open transaction; run BEGIN on it first`,
      )
    }
    // The connection is the caller's, and may be one that keeps no prepared statements.
    return this.#queries(within, false)
  }

  close(): Promise<void> {
    return this.#pool.end()
  }

  #queries(client: Pick<PgClient, 'query'>, prepare = this.#prepare): Queries {
    return { dialect: POSTGRES, rows: (sql, values) => this.#send(client, sql, values, prepare) }
  }

  async #send(
    client: Pick<PgClient, 'query'>,
    sql: string,
    values: readonly Value[] = [],
    prepare = this.#prepare,
  ): Promise<readonly Row[]> {
    const { text, name } = this.#translated(sql)
    // Without values it may be several statements in one text, which cannot be prepared.
    const prepared = prepare && values.length > 0 ? { name } : {}
    try {
      const answer = await client.query({ text, values, query_timeout: this.#answerMs, ...prepared })
      // The answer to several statements in one text is a list without rows.
      return (answer.rows ?? []) as readonly Row[]
    } catch (error) {
      throw toEngineError(error, 'running a statement')
    }
  }

  textOf(sql: string): string {
    return sql.replaceAll(/\{([a-z_][a-z0-9_]*)\}/g, `${this.#schema}.$1`)
  }

  #translated(sql: string): Translation {
    const known = this.#translations.get(sql)
    if (known !== undefined) return known
    const text = this.textOf(sql)
    const name = `millrace_${createHash('sha1').update(text).digest('hex').slice(0, 16)}`
    const translation = { text, name }
    this.#translations.set(sql, translation)
    return translation
  }

  async #use<Answer>(run: (client: PgPoolClient) => Promise<Answer>): Promise<Answer> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#once(run)
      } catch (error) {
        if (!isConflict(causeOf(error)) || tries === CONFLICT_TRIES) throw error
        await systemClock.sleep(CONFLICT_PAUSE_MS * tries * Math.random())
      }
    }
  }

  async #once<Answer>(run: (client: PgPoolClient) => Promise<Answer>): Promise<Answer> {
    const client = await this.#pool.connect().catch((error: unknown) => {
      throw toEngineError(error, 'connecting')
    })
    let isBroken = false
    try {
      return await run(client)
    } catch (error) {
      isBroken = isConnectionFault(causeOf(error))
      throw error
    } finally {
      client.release(isBroken)
    }
  }
}

/** The driver's error behind a coded one. */
function causeOf(error: unknown): unknown {
  return isMillraceError(error) ? error.cause : error
}
