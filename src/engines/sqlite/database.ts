import { DatabaseSync, constants as sqlite } from 'node:sqlite'
import { EngineError } from '../../errors.ts'
import { toOpenError } from './faults.ts'
import { WAL_PAGES } from './fold-log.ts'

export type SqliteValue = string | number | bigint | null
type Named = Record<string, SqliteValue>
interface Changes {
  readonly changes: number | bigint
}

/** The part of a prepared statement we use: node:sqlite's and better-sqlite3's both fit. */
export interface SqliteStatement {
  run(named: Named, ...rest: SqliteValue[]): Changes
  run(...parameters: SqliteValue[]): Changes
  get(named: Named): unknown
  get(...parameters: SqliteValue[]): unknown
  all(named: Named): unknown[]
  all(...parameters: SqliteValue[]): unknown[]
  /** node:sqlite: rows as arrays. */
  setReturnArrays?(enabled: boolean): void
  /** better-sqlite3: rows as arrays. */
  raw?(enabled: boolean): unknown
}

/** The part of a database handle we use: node:sqlite's and better-sqlite3's both fit. */
export interface SqliteDatabase {
  exec(sql: string): unknown
  prepare(sql: string): SqliteStatement
  close(): unknown
}

/** What an acknowledged call survives. `full`: a power cut. `normal`: a process crash; a power cut may lose the last calls. */
export type Synchronous = 'full' | 'normal'

/**
 * SQLite before 3.51.3 can corrupt a WAL database that two connections write and checkpoint
 * (sqlite.org/wal.html#walresetbug). A queue does exactly that, so older versions are refused.
 */
const VERSION_MIN = [3, 51, 3] as const

/** A connection with a cache of prepared statements. One per engine and thread. */
export class Connection {
  readonly handle: SqliteDatabase
  readonly #statements = new Map<string, SqliteStatement>()
  readonly #arrays = new Map<string, SqliteStatement>()

  constructor(handle: SqliteDatabase) {
    this.handle = handle
  }

  prepare(sql: string): SqliteStatement {
    const known = this.#statements.get(sql)
    if (known !== undefined) return known
    const statement = this.handle.prepare(sql)
    this.#statements.set(sql, statement)
    return statement
  }

  /** Rows as arrays of columns take half the time and memory of objects. For the statements that every job passes. */
  prepareArrays(sql: string): SqliteStatement {
    const known = this.#arrays.get(sql)
    if (known !== undefined) return known
    const statement = this.handle.prepare(sql)
    if (statement.setReturnArrays === undefined) statement.raw?.(true)
    else statement.setReturnArrays(true)
    this.#arrays.set(sql, statement)
    return statement
  }

  exec(sql: string): void {
    this.handle.exec(sql)
  }

  close(): void {
    this.#statements.clear()
    this.#arrays.clear()
    this.handle.close()
  }
}

export function openFile(path: string): SqliteDatabase {
  try {
    // The busy timeout would block the event loop; the writer waits for the lock asynchronously instead.
    return new DatabaseSync(path, { timeout: 0 })
  } catch (error) {
    throw toOpenError(error, 'opening', path)
  }
}

/** Refuses an SQLite version that could damage the file, then sets the pragmas for durability and speed. */
export function configure(connection: Connection, pragmaSynchronous: 'FULL' | 'NORMAL', owned: boolean): void {
  assertVersion(connection)
  connection.exec('PRAGMA busy_timeout = 0')
  if (owned) vacuumIncrementally(connection)
  connection.exec('PRAGMA journal_mode = WAL')
  connection.exec(`PRAGMA synchronous = ${pragmaSynchronous}`)
  connection.exec(`PRAGMA wal_autocheckpoint = ${WAL_PAGES}`)
  connection.exec('PRAGMA cache_size = -8192')
  // Statement journals would go to temporary files as soon as a batch touches more than sixteen pages.
  connection.exec('PRAGMA temp_store = MEMORY')
  connection.exec('PRAGMA trusted_schema = OFF')
}

/** Lets retention give space back in small steps. SQLite accepts it only for an empty file. */
function vacuumIncrementally(connection: Connection): void {
  const { page_count: pages } = connection.handle.prepare('PRAGMA page_count').get() as { page_count: number }
  if (pages === 0) connection.exec('PRAGMA auto_vacuum = INCREMENTAL')
}

function assertVersion(connection: Connection): void {
  const row = connection.prepare('SELECT sqlite_version() AS version').get() as { version: string }
  assertVersionText(row.version)
}

export function assertVersionText(version: string): void {
  const parts = version.split('.').map(Number)
  for (const [index, least] of VERSION_MIN.entries()) {
    const part = parts[index] ?? 0
    if (part > least) return
    if (part < least) {
      throw new EngineError(
        'ERR_SQLITE_VERSION',
        `SQLite ${version} can corrupt a WAL file shared by two connections; use ${VERSION_MIN.join('.')} or newer (Node 24.15 or better-sqlite3 13)`,
      )
    }
  }
}

/** Actions that change the schema. A worker's connection may perform none of them. */
const SCHEMA_CHANGES = new Set<number>([
  sqlite.SQLITE_CREATE_INDEX,
  sqlite.SQLITE_CREATE_TABLE,
  sqlite.SQLITE_CREATE_TRIGGER,
  sqlite.SQLITE_CREATE_VIEW,
  sqlite.SQLITE_CREATE_VTABLE,
  sqlite.SQLITE_DROP_INDEX,
  sqlite.SQLITE_DROP_TABLE,
  sqlite.SQLITE_DROP_TRIGGER,
  sqlite.SQLITE_DROP_VIEW,
  sqlite.SQLITE_DROP_VTABLE,
  sqlite.SQLITE_ALTER_TABLE,
  sqlite.SQLITE_ATTACH,
  sqlite.SQLITE_DETACH,
])

const guarded = new WeakSet<SqliteDatabase>()

/** Denies schema changes on this connection. Only handles that Millrace opened are guarded. */
export function forbidSchemaChanges(handle: SqliteDatabase): void {
  if (!(handle instanceof DatabaseSync)) return
  guarded.add(handle)
  handle.setAuthorizer((action) => (SCHEMA_CHANGES.has(action) ? sqlite.SQLITE_DENY : sqlite.SQLITE_OK))
}

/** Runs one statement that changes the schema. Inside a write transaction. */
export function changeSchema(handle: SqliteDatabase, sql: string): void {
  if (!(handle instanceof DatabaseSync) || !guarded.has(handle)) {
    handle.exec(sql)
    return
  }
  handle.setAuthorizer(null)
  try {
    handle.exec(sql)
  } finally {
    forbidSchemaChanges(handle)
  }
}

/**
 * A second connection that only reads. Null for a database in memory, and for handles of another library: two of them in a
 * process would release each other's locks on the file.
 */
export function openReader(handle: SqliteDatabase): SqliteDatabase | null {
  const file = handle instanceof DatabaseSync ? fileOf(handle) : ''
  return file === '' ? null : new DatabaseSync(file, { readOnly: true, timeout: 0 })
}

/** The file behind a handle; empty for a database in memory. */
export function fileOf(handle: SqliteDatabase): string {
  const rows = handle.prepare('PRAGMA database_list').all() as { name: string; file: string | null }[]
  return rows.find((row) => row.name === 'main')?.file ?? ''
}

/** Whether a transaction is open on the handle: the two libraries name the property differently. */
export function isInTransaction(handle: SqliteDatabase): boolean {
  return Reflect.get(handle, 'isTransaction') === true || Reflect.get(handle, 'inTransaction') === true
}

/** Runs reads that must see the same moment. A transaction that is already open is one. */
export function inSnapshot<Answer>(connection: Connection, read: () => Answer): Answer {
  if (isInTransaction(connection.handle)) return read()
  connection.exec('BEGIN')
  try {
    return read()
  } finally {
    connection.exec('COMMIT')
  }
}

export function isSqliteDatabase(handle: object): handle is SqliteDatabase {
  return ['exec', 'prepare', 'close'].every((name) => typeof Reflect.get(handle, name) === 'function')
}
