import { quote } from '../../src/engines/postgres/names.ts'
import { EngineError, OptionError } from '../../src/errors.ts'
import { type Database, textOf } from './database.ts'

/** The properties of a user's table. */
export interface Shape {
  /** Quoted, with its schema if one is configured. */
  readonly name: string
  readonly events: string
  readonly oid: number
  /** `text` or the user's enum, which needs a cast. */
  readonly statusType: string
  /** They tell the age of rows without a lease. */
  readonly hasUpdatedAt: boolean
  readonly hasCreatedAt: boolean
  readonly hasRunAt: boolean
  /** The engine's own table, recognised by its fence. Its desk and retention need the end time of a job. */
  readonly isMillrace: boolean
}

export const EVENTS_TABLE = 'job_events'

/** The columns that the reaper reads or writes. */
const NEEDED = [
  'id',
  'status',
  'locked_by',
  'lease_expires_at',
  'last_heartbeat_at',
  'attempt_count',
  'max_attempts',
  'fail_code',
  'fail_reason',
  'stage',
  'next_earliest_run_at',
]
/** Claims and heartbeats also need the columns of the hard deadline. */
const NEEDED_FOR_LEASES = [...NEEDED, 'expected_duration_ms', 'started_at']

export type Use = 'reaping' | 'leases'

/** Reads each table's columns once, and again after `forget`. */
export class Shapes {
  readonly #database: Database
  readonly #schema: string | null
  readonly #known = new Map<string, Shape>()

  constructor(database: Database, { schema }: Pick<Place, 'schema'>) {
    this.#database = database
    this.#schema = schema
  }

  /** Rejects with `ERR_SCHEMA_MISSING`, naming what is missing. */
  async of(table: string, use: Use): Promise<Shape> {
    const key = `${use} ${table}`
    const shape = this.#known.get(key) ?? (await this.#look(table, use))
    this.#known.set(key, shape)
    return shape
  }

  forget(): void {
    this.#known.clear()
  }

  async #look(table: string, use: Use): Promise<Shape> {
    const columns = await this.#columns(table, use === 'leases' ? NEEDED_FOR_LEASES : NEEDED)
    await this.#columns(EVENTS_TABLE, ['job_id', 'data'])
    return {
      name: qualified(table, this.#schema),
      events: qualified(EVENTS_TABLE, this.#schema),
      oid: columns.oid,
      statusType: columns.types.get('status') ?? 'text',
      hasUpdatedAt: isTime(columns.types.get('updated_at')),
      hasCreatedAt: isTime(columns.types.get('created_at')),
      hasRunAt: isTime(columns.types.get('run_at')),
      isMillrace: columns.types.has('lease_token') && isTime(columns.types.get('completed_at')),
    }
  }

  async #columns(table: string, needed: readonly string[]): Promise<{ oid: number; types: Map<string, string> }> {
    const { rows } = await this.#database.query(COLUMNS_OF, [qualified(table, this.#schema)])
    const types = new Map(rows.map((row) => [textOf(row, 'name') ?? '', textOf(row, 'type') ?? '']))
    const missing = needed.filter((column) => !types.has(column))
    if (missing.length > 0) throw incomplete(table, types.size === 0 ? [] : missing)
    return { oid: Number(textOf(rows[0] ?? {}, 'oid')), types }
  }
}

/** A user's column of the same name may have another type. */
function isTime(type: string | undefined): boolean {
  return type?.startsWith('timestamp ') === true
}

function incomplete(table: string, missing: readonly string[]): EngineError {
  const isThere = missing.length > 0
  const what = isThere ? `has no column ${missing.join(', ')}` : 'does not exist'
  const named = table === EVENTS_TABLE ? '<your tables>' : table
  const advice =
    isThere || table === EVENTS_TABLE
      ? `add what is missing with 'millrace migrate --tables ${named}'`
      : `check its name, or create it with 'millrace migrate --tables ${table} --new'`
  return new EngineError('ERR_SCHEMA_MISSING', `table '${table}' ${what}; ${advice}`)
}

/** The default tables. Others must be configured by name. */
export type JobTable = 'jobs' | 'asr_jobs'

/** In the order of a run of the reaper. */
export const JOB_TABLES: readonly JobTable[] = Object.freeze(['jobs', 'asr_jobs'])

/** A table's name in SQL. Without a schema, the connection's search_path decides. */
export function qualified(table: string, schema: string | null): string {
  return schema === null ? quote(table) : `${quote(schema)}.${quote(table)}`
}

export interface Place<Table extends string = JobTable> {
  readonly tables: readonly Table[]
  readonly schema: string | null
}

export interface PlaceOptions<Table extends string = JobTable> {
  /** Default: `jobs` and `asr_jobs`. No other table is touched. */
  readonly tables?: readonly Table[]
  /** The schema of the tables and of `job_events`. Default: the connection's search_path. */
  readonly schema?: string
}

/** Throws an OptionError for invalid names. */
export function placeOf<Table extends string>(options: PlaceOptions<Table>): Place<Table | JobTable> {
  const tables: readonly (Table | JobTable)[] = options.tables ?? JOB_TABLES
  if (tables.length === 0) throw new OptionError(`'tables' is empty; name at least one table, such as 'jobs'`)
  const twice = tables.find((name, index) => tables.indexOf(name) !== index)
  if (twice !== undefined) throw new OptionError(`'tables' names '${twice}' twice; name each table once`)
  for (const name of tables) quote(name)
  if (options.schema !== undefined) quote(options.schema)
  return { tables, schema: options.schema ?? null }
}

/** The columns of a table by its quoted name; no rows if it does not exist. */
const COLUMNS_OF = `
select attrelid::oid::text as oid, attname::text as name, format_type(atttypid, null) as type
from pg_attribute
where attrelid = to_regclass($1) and attnum > 0 and not attisdropped`

/** The types of the columns of a table by its quoted name; empty if it does not exist. */
export async function columnsOf(database: Database, name: string): Promise<ReadonlyMap<string, string>> {
  const { rows } = await database.query(COLUMNS_OF, [name])
  return new Map(rows.map((row) => [textOf(row, 'name') ?? '', textOf(row, 'type') ?? '']))
}

/** The schema that search_path resolves to. */
export const SCHEMA_OF = `
select nspname::text as schema from pg_class join pg_namespace on pg_namespace.oid = relnamespace
where pg_class.oid = to_regclass($1)`
