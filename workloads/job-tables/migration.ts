import { toEngineError } from '../../src/engines/postgres/faults.ts'
import { LEASE_COLUMNS } from '../../src/engines/postgres/jobs-table.ts'
import { quote } from '../../src/engines/postgres/names.ts'
import { EngineError } from '../../src/errors.ts'
import { type Database, textOf } from './database.ts'
import { COLUMNS_OF, EVENTS_TABLE, type JobTable, type PlaceOptions, placeOf, qualified, SCHEMA_OF } from './shape.ts'

/** The statements that were run, or would be run with `dryRun`. Empty if nothing is missing. */
export interface TablesPlan {
  readonly statements: readonly string[]
}

/** The engine's lease columns, and `started_at` for the hard deadlines. */
const COLUMNS = [...LEASE_COLUMNS, { name: 'started_at', definition: 'TIMESTAMPTZ NULL' }]

/** Types that an existing column may have. A time without a zone would depend on the session. */
const FITTING: Readonly<Record<string, RegExp>> = {
  TEXT: /^(?:text|character varying|citext)$/,
  TIMESTAMPTZ: /^timestamp with time zone$/,
  INT: /^(?:integer|bigint|smallint)$/,
}

/** Otherwise all statements would queue behind this one while it waits for a long transaction. */
const LOCK_TIMEOUT = `SET LOCAL lock_timeout = '5s'`

/**
 * Adds the missing columns and index to existing tables, and creates `job_events` if missing. Existing columns, rows and
 * indexes do not change. It happens in one transaction, and it is safe to repeat.
 */
export async function migrateTables<Table extends string = JobTable>(
  database: Database,
  options: PlaceOptions<Table> & { readonly dryRun?: boolean } = {},
): Promise<TablesPlan> {
  const { tables, schema } = placeOf(options)
  try {
    const statements = await pending(database, tables, schema)
    if (statements.length > 0 && options.dryRun !== true) {
      await database.query(`${[LOCK_TIMEOUT, ...statements].join(';\n')};`)
    }
    return { statements }
  } catch (error) {
    throw toEngineError(error, `adding columns to ${tables.join(', ')}`)
  }
}

async function pending(database: Database, tables: readonly string[], schema: string | null): Promise<string[]> {
  const statements: string[] = []
  for (const table of tables) statements.push(...(await pendingOf(database, table, schema)))
  const events = qualified(EVENTS_TABLE, schema)
  if ((await columnsOf(database, events)).size === 0) {
    // No foreign key: the ids come from several tables.
    statements.push(`CREATE TABLE IF NOT EXISTS ${events} (job_id TEXT NOT NULL, data JSONB NOT NULL)`)
  }
  return statements
}

async function pendingOf(database: Database, table: string, schema: string | null): Promise<string[]> {
  const name = qualified(table, schema)
  const present = await columnsOf(database, name)
  check(table, present)
  const missing = COLUMNS.filter((column) => !present.has(column.name))
  const adding = missing.map((column) => `ADD COLUMN IF NOT EXISTS ${quote(column.name)} ${column.definition}`)
  const index = `idx_${table}_status_lease`
  const home = await schemaOf(database, name)
  const isIndexed = (await columnsOf(database, qualified(index, home))).size > 0
  return [
    ...(adding.length === 0 ? [] : [`ALTER TABLE ${name}\n  ${adding.join(',\n  ')}`]),
    ...(isIndexed ? [] : [`CREATE INDEX IF NOT EXISTS ${quote(index)} ON ${name} (status, lease_expires_at)`]),
  ]
}

function check(table: string, present: ReadonlyMap<string, string>): void {
  if (present.size === 0) {
    throw new EngineError('ERR_SCHEMA_MISSING', `table '${table}' does not exist; create it, or name existing tables`)
  }
  const needed = ['id', 'status'].filter((column) => !present.has(column))
  if (needed.length > 0) {
    throw new EngineError('ERR_SCHEMA_MISSING', `table '${table}' has no column ${needed.join(', ')}; add it first`)
  }
  for (const { name, definition } of COLUMNS) {
    const [wanted = ''] = definition.split(' ')
    const type = present.get(name)
    if (type === undefined || FITTING[wanted]?.test(type) === true) continue
    const advice = `'${table}.${name}' is ${type}, not ${wanted}; change its type, or rename it to make room`
    throw new EngineError('ERR_SCHEMA_MISSING', advice)
  }
}

async function columnsOf(database: Database, name: string): Promise<ReadonlyMap<string, string>> {
  const { rows } = await database.query(COLUMNS_OF, [name])
  return new Map(rows.map((row) => [textOf(row, 'name') ?? '', textOf(row, 'type') ?? '']))
}

async function schemaOf(database: Database, name: string): Promise<string> {
  const { rows } = await database.query(SCHEMA_OF, [name])
  return textOf(rows[0] ?? {}, 'schema') ?? 'public'
}
