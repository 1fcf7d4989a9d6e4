import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import type { Transaction } from '../../src/engine/engine.ts'
import {
  Connection,
  configure,
  fileOf,
  isInTransaction,
  isSqliteDatabase,
  type SqliteValue,
} from '../../src/engines/sqlite/database.ts'
import { isBusy, toEngineError, toOpenError } from '../../src/engines/sqlite/faults.ts'
import { parseUrl } from '../../src/engines/sqlite/url.ts'
import { WalSync } from '../../src/engines/sqlite/wal-sync.ts'
import { Writer } from '../../src/engines/sqlite/writer.ts'
import { EngineError, OptionError } from '../../src/errors.ts'
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

export const SQLITE: Dialect = {
  name: 'sqlite',
  texts: (parameter) => `(SELECT value FROM json_each(${parameter}))`,
  json: (parameter) => parameter,
  forUpdate: '',
}

/** How long a transaction waits for the write lock, without blocking the event loop. */
const BUSY_MS_MAX = 30_000
const RETRY_MS_MAX = 8

export function openSqlite(url: string, { mustExist }: { readonly mustExist: boolean }): WorkloadDatabase {
  const { database: file, synchronous } = parseUrl(url)
  if (mustExist && !existsSync(file)) {
    throw new EngineError('ERR_STORAGE_OPEN', `there is no file '${file}'; check --engine`)
  }
  if (file === ':memory:') {
    throw new OptionError(
      `a database in memory has one connection; give a file for the tables, such as sqlite:./app.db`,
    )
  }
  const open = (): Connection => {
    try {
      const connection = new Connection(new DatabaseSync(file, { timeout: 0 }))
      configure(connection, 'NORMAL', true)
      connection.exec('PRAGMA foreign_keys = ON')
      return connection
    } catch (error) {
      throw toOpenError(error, 'opening', file)
    }
  }
  return new SqliteTables(open(), open, synchronous === 'full')
}

/**
 * One connection writes and another reads, so a reader never sees what is not committed. Both are configured like the
 * engine's, and single writes are committed in groups by the engine's `Writer`.
 */
class SqliteTables implements WorkloadDatabase {
  readonly dialect = SQLITE
  readonly #writing: Connection
  readonly #reading: Connection
  readonly #walSync: WalSync | null
  readonly #writer: Writer
  /** The last interactive transaction: the next one waits for it. */
  #turn: Promise<unknown> = Promise.resolve()

  constructor(writing: Connection, open: () => Connection, isDurable: boolean) {
    this.#writing = writing
    this.#reading = open()
    this.#reading.exec('PRAGMA query_only = ON')
    const walSync = isDurable ? new WalSync(fileOf(writing.handle)) : null
    this.#walSync = walSync
    this.#writer = new Writer(writing, { sync: walSync === null ? null : () => walSync.sync() })
  }

  readonly read = (sql: string, values: readonly Value[] = []): Promise<readonly Row[]> =>
    unlessBusy(`reading`, () => all(this.#reading, sql, values))

  write(statements: readonly Statement[], options: WriteOptions = {}): Promise<readonly (readonly Row[])[]> {
    const run = () => statements.map(({ sql, values }) => all(this.#writing, sql, values))
    return this.#writer.run('writing', run, options.durability)
  }

  textOf(sql: string): string {
    return translated(sql).text
  }

  transaction<Answer>(work: (transaction: WorkloadTransaction) => Promise<Answer>): Promise<Answer> {
    const turn = this.#turn.then(() => this.#transact(work))
    this.#turn = turn.catch(() => undefined)
    return turn
  }

  async #transact<Answer>(work: (transaction: WorkloadTransaction) => Promise<Answer>): Promise<Answer> {
    const { handle } = this.#writing
    await unlessBusy('starting a transaction', () => handle.exec('BEGIN IMMEDIATE'))
    let answer: Answer
    try {
      answer = await work({ ...queriesOf(this.#writing), within: handle })
      coded('committing', () => handle.exec('COMMIT'))
    } catch (error) {
      if (isInTransaction(handle)) handle.exec('ROLLBACK')
      throw error
    }
    await this.#walSync?.sync()
    return answer
  }

  on(within: Transaction): Queries {
    if (isSqliteDatabase(within) && isInTransaction(within) && fileOf(within) === fileOf(this.#writing.handle)) {
      return queriesOf(new Connection(within))
    }
    throw new EngineError(
      'ERR_STORAGE_FAILED',
      `'within' must be a database handle with an open transaction on the same file; run BEGIN on it first`,
    )
  }

  async close(): Promise<void> {
    await this.#turn
    await this.#writer.close()
    await this.#walSync?.close()
    this.#reading.close()
    this.#writing.close()
  }
}

function queriesOf(connection: Connection): Queries {
  return {
    dialect: SQLITE,
    rows: async (sql, values = []) => coded('running a statement', () => all(connection, sql, values)),
  }
}

function coded<Answer>(during: string, run: () => Answer): Answer {
  try {
    return run()
  } catch (error) {
    throw toEngineError(error, during)
  }
}

interface Translation {
  readonly text: string
  /** Which value belongs to each `?`. With `?1` better-sqlite3 would ask for names. */
  readonly places: readonly number[]
}

const PARAMETER = /\$(\d+)/g
const translations = new Map<string, Translation>()

function translated(sql: string): Translation {
  const known = translations.get(sql)
  if (known !== undefined) return known
  const places = [...sql.matchAll(PARAMETER)].map(([, number]) => Number(number) - 1)
  const text = sql.replaceAll(/\{([a-z_][a-z0-9_]*)\}/g, '$1').replaceAll(PARAMETER, '?')
  const translation = { text, places }
  translations.set(sql, translation)
  return translation
}

function all(connection: Connection, sql: string, values: readonly Value[] = []): readonly Row[] {
  const { text, places } = translated(sql)
  // A migration has several statements, which cannot be prepared as one.
  if (values.length === 0 && /;\s*\S/.test(text)) {
    connection.exec(text)
    return []
  }
  const statement = connection.prepare(text)
  const parameters = places.map((place) => bound(values[place] ?? null))
  if (Reflect.get(statement, 'reader') !== false) return statement.all(...parameters) as readonly Row[]
  // better-sqlite3 refuses to read from a statement without rows.
  statement.run(...parameters)
  return []
}

/** node:sqlite takes bytes too, which the engine's own statements do not need. */
function bound(value: Value): SqliteValue {
  return (typeof value === 'boolean' ? Number(value) : value) as SqliteValue
}

/** Tries again without blocking while another connection holds the lock. */
async function unlessBusy<Answer>(during: string, run: () => Answer): Promise<Answer> {
  const untilMs = systemClock.monotonicMs() + BUSY_MS_MAX
  for (let waitMs = 0.5; ; waitMs = Math.min(waitMs * 2, RETRY_MS_MAX)) {
    try {
      return run()
    } catch (error) {
      if (!isBusy(error) || systemClock.monotonicMs() > untilMs) throw toEngineError(error, during)
      await systemClock.sleep(waitMs * (0.5 + Math.random()))
    }
  }
}
