/** The tables of a workload, in the SQLite file or the Postgres database that holds its jobs. */
import type { Transaction } from '../../src/engine/engine.ts'
import { OptionError } from '../../src/errors.ts'
import { type Clock, systemClock } from '../../src/time/clock.ts'
import { checkSchemas, type WorkloadSchema } from './schema.ts'

export type Value = string | number | bigint | boolean | Uint8Array | null

/** A row of the driver. The functions of columns.ts read its values, which the two drivers return differently. */
export type Row = Readonly<Record<string, unknown>>

/**
 * SQL that both databases understand. Parameters are `$1`, `$2`…, and `{name}` is the name of a table, which Postgres gets
 * with its schema. Times are bound as ISO text.
 */
export interface Statement {
  readonly sql: string
  readonly values?: readonly Value[]
}

export interface Queries {
  readonly dialect: Dialect
  rows(sql: string, values?: readonly Value[]): Promise<readonly Row[]>
}

/** What differs between the two, as fragments of SQL. */
export interface Dialect {
  readonly name: 'sqlite' | 'postgres'
  /** The texts of a JSON array that is bound as a parameter: `WHERE id IN ${texts('$1')}`. */
  texts(parameter: string): string
  /** A parameter that is JSON text, for a column of JSON. */
  json(parameter: string): string
  /** Appended to a SELECT inside of a transaction: other transactions wait before they change these rows. */
  readonly forUpdate: string
}

export interface WorkloadTransaction extends Queries {
  /** For `mill.enqueue(…, { within })`: jobs that commit with these rows or not at all. */
  readonly within: Transaction
}

export interface WriteOptions {
  /**
   * On SQLite, `volatile` returns before the commit is on the disk: a power cut may undo it, a crash of the process cannot,
   * and the next durable commit of any process keeps it too. Postgres has `synchronous_commit` for that.
   */
  readonly durability?: 'durable' | 'volatile'
  /** A second run would change nothing, so a write whose connection is lost is tried again for 10 s. Default: false. */
  readonly isRepeatable?: boolean
}

export interface WorkloadDatabase {
  readonly dialect: Dialect
  /** What is committed. */
  read(sql: string, values?: readonly Value[]): Promise<readonly Row[]>
  /**
   * All or nothing, in order; returns the rows of each statement. On SQLite, calls made at the same time share one commit,
   * which is on the disk when they return.
   */
  write(statements: readonly Statement[], options?: WriteOptions): Promise<readonly (readonly Row[])[]>
  /**
   * All or nothing, with reads between. It may run again from the start after a conflict, so it must have no other effects.
   * Keep it short: other writers wait for it.
   */
  transaction<Answer>(work: (transaction: WorkloadTransaction) => Promise<Answer>): Promise<Answer>
  /** Statements in a transaction of the caller: a handle of node:sqlite or better-sqlite3, or a pg client. */
  on(within: Transaction): Queries
  /** The statement as it is sent: a table in braces by its full name. */
  textOf(sql: string): string
  close(): Promise<void>
}

export interface OpenDatabaseOptions {
  /** The tables that must exist. */
  readonly schemas: readonly WorkloadSchema[]
  /** Create or update them; default: true for SQLite, false for Postgres, which `millrace migrate --workload` migrates. */
  readonly migrate?: boolean
  /** Refuse to create a file, for commands that read what is there. Default: false. */
  readonly mustExist?: boolean
  /**
   * Every statement finds its rows by an index and names its columns. Postgres then plans it once and keeps the plan, which
   * stays right while the tables grow. Default: false.
   */
  readonly usesIndexes?: boolean
  readonly clock?: Clock
}

/**
 * Opens the database of a mill's URL for the tables of a workload.
 *
 * @example
 * const database = await openDatabase('sqlite:./millrace.db', { schemas: [webhooksSchema] })
 */
export async function openDatabase(url: string, options: OpenDatabaseOptions): Promise<WorkloadDatabase> {
  const { schemas, clock = systemClock } = options
  const [engine = ''] = url.split(':')
  const isSqlite = engine === 'sqlite'
  const database = await connect(engine, url, options)
  try {
    await checkSchemas(database, schemas, { migrate: options.migrate ?? isSqlite, nowMs: clock.nowMs() })
    return database
  } catch (error) {
    await database.close()
    throw error
  }
}

async function connect(
  engine: string,
  url: string,
  { mustExist = false, usesIndexes = false }: OpenDatabaseOptions,
): Promise<WorkloadDatabase> {
  switch (engine) {
    case 'sqlite':
      return (await import('./sqlite.ts')).openSqlite(url, { mustExist })
    case 'postgres':
    case 'postgresql':
      return (await import('./postgres.ts')).openPostgres(url, { usesIndexes })
    default:
      throw new OptionError(
        `the tables of a workload cannot be kept on '${engine}'; give a sqlite: or postgres: URL for them`,
      )
  }
}
