import { toEngineError } from '../../src/engines/postgres/faults.ts'
import { LEASE_COLUMNS } from '../../src/engines/postgres/jobs-table.ts'
import { quote } from '../../src/engines/postgres/names.ts'
import { EngineError } from '../../src/errors.ts'
import { type OptionNames, refuseUnknown } from '../../src/job/known-options.ts'
import { type Database, textOf } from './database.ts'
import { columnsOf, EVENTS_TABLE, type JobTable, type PlaceOptions, placeOf, qualified, SCHEMA_OF } from './shape.ts'
import { IS_SUPERVISION } from './sql.ts'

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

/** What a new table has besides. The rest is the user's. */
const NEW_COLUMNS = [
  { name: 'id', definition: 'UUID PRIMARY KEY DEFAULT gen_random_uuid()' },
  {
    name: 'status',
    definition: `TEXT NOT NULL DEFAULT 'queued' CHECK (status IN ('queued', 'processing', 'completed', 'failed'))`,
  },
  { name: 'created_at', definition: 'TIMESTAMPTZ NOT NULL DEFAULT now()' },
]

/** What every job table has. */
export const COLUMN_NAMES: readonly string[] = ['id', 'status', ...COLUMNS.map(({ name }) => name)]

/** On the status and the end of the lease: what the reaper looks for. */
export const leaseIndexOf = (table: string): string => `idx_${table}_status_lease`
/** On the time of what reapers and operators did, which job_events has no order for. */
export const EVENTS_INDEX = 'idx_job_events_reaper'

/** Otherwise all statements would queue behind this one while it waits for a long transaction. */
const LOCK_TIMEOUT = `SET LOCAL lock_timeout = '5s'`

export interface MigrateOptions<Table extends string = JobTable> extends PlaceOptions<Table> {
  /** Returns the statements and runs none. */
  readonly dryRun?: boolean
  /** Creates tables that do not exist. Default: false, because a name may be misspelt. */
  readonly create?: boolean
}

const OPTION_NAMES: OptionNames<MigrateOptions<string>> = { tables: true, schema: true, dryRun: true, create: true }

/**
 * Adds the missing columns and index to existing tables, and creates `job_events` if missing. Existing columns, rows and
 * indexes do not change. It happens in one transaction, and it is safe to repeat.
 */
export async function migrateTables<Table extends string = JobTable>(
  database: Database,
  options: MigrateOptions<Table> = {},
): Promise<TablesPlan> {
  refuseUnknown(options, OPTION_NAMES, 'migrateTables')
  const { tables, schema } = placeOf(options)
  try {
    const statements: string[] = []
    for (const table of tables) statements.push(...(await pendingOf(database, table, schema, options.create === true)))
    statements.push(...(await pendingEvents(database, schema)))
    if (statements.length > 0 && options.dryRun !== true) {
      await database.query(`${[LOCK_TIMEOUT, ...statements].join(';\n')};`)
    }
    return { statements }
  } catch (error) {
    throw toEngineError(error, `adding columns to ${tables.join(', ')}`)
  }
}

async function pendingEvents(database: Database, schema: string | null): Promise<readonly string[]> {
  const name = qualified(EVENTS_TABLE, schema)
  const isThere = (await columnsOf(database, name)).size > 0
  const index = `CREATE INDEX IF NOT EXISTS ${EVENTS_INDEX} ON ${name} ((data ->> 'at')) WHERE ${IS_SUPERVISION}`
  return [
    // No foreign key: the ids come from several tables.
    ...(isThere ? [] : [`CREATE TABLE IF NOT EXISTS ${name} (job_id TEXT NOT NULL, data JSONB NOT NULL)`]),
    ...(isThere && (await hasIndex(database, EVENTS_INDEX, name)) ? [] : [index]),
  ]
}

async function pendingOf(
  database: Database,
  table: string,
  schema: string | null,
  create: boolean,
): Promise<readonly string[]> {
  const name = qualified(table, schema)
  const present = await columnsOf(database, name)
  const index = leaseIndexOf(table)
  const indexing = `CREATE INDEX IF NOT EXISTS ${quote(index)} ON ${name} (status, lease_expires_at)`
  if (present.size === 0 && create) return [creating(name), indexing]
  check(table, present)
  const missing = COLUMNS.filter((column) => !present.has(column.name))
  const adding = missing.map((column) => `ADD COLUMN IF NOT EXISTS ${quote(column.name)} ${column.definition}`)
  return [
    ...(adding.length === 0 ? [] : [`ALTER TABLE ${name}\n  ${adding.join(',\n  ')}`]),
    ...((await hasIndex(database, index, name)) ? [] : [indexing]),
  ]
}

function creating(name: string): string {
  const columns = [...NEW_COLUMNS, ...COLUMNS].map((column) => `${quote(column.name)} ${column.definition}`)
  return `CREATE TABLE IF NOT EXISTS ${name} (\n  ${columns.join(',\n  ')}\n)`
}

/** An index is in the schema of its table. */
async function hasIndex(database: Database, index: string, table: string): Promise<boolean> {
  const home = await schemaOf(database, table)
  return (await columnsOf(database, qualified(index, home))).size > 0
}

function check(table: string, present: ReadonlyMap<string, string>): void {
  if (present.size === 0) {
    throw new EngineError(
      'ERR_SCHEMA_MISSING',
      `table '${table}' does not exist; name an existing one, or create it with 'millrace migrate --tables ${table} --new'`,
    )
  }
  const needed = ['id', 'status'].filter((column) => !present.has(column))
  if (needed.length > 0) {
    throw new EngineError('ERR_SCHEMA_MISSING', `table '${table}' has no column ${needed.join(', ')}; add it first`)
  }
  const misfit = misfitOf(table, present)
  if (misfit !== null) throw new EngineError('ERR_SCHEMA_MISSING', misfit)
}

/** An existing column of a type that does not fit, and what to do. Null if all fit. */
export function misfitOf(table: string, present: ReadonlyMap<string, string>): string | null {
  for (const { name, definition } of COLUMNS) {
    const [wanted = ''] = definition.split(' ')
    const type = present.get(name)
    if (type === undefined || FITTING[wanted]?.test(type) === true) continue
    return `'${table}.${name}' is ${type}, not ${wanted}; change its type, or rename it to make room`
  }
  return null
}

async function schemaOf(database: Database, name: string): Promise<string> {
  const { rows } = await database.query(SCHEMA_OF, [name])
  return textOf(rows[0] ?? {}, 'schema') ?? 'public'
}
