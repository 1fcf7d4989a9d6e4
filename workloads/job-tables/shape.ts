import { quote } from '../../src/engines/postgres/names.ts'
import { EngineError, OptionError } from '../../src/errors.ts'
import { type Database, textOf } from './database.ts'

/** What is known of a table that somebody else made. */
export interface Shape {
  /** Quoted, with its schema where one was given. */
  readonly name: string
  readonly events: string
  readonly oid: number
  /** `text`, or the user's own enum, which SQL does not convert to by itself. */
  readonly statusType: string
  /** Which of `updated_at` and `created_at` there are: they tell the age of rows that have no lease (X173). */
  readonly hasUpdatedAt: boolean
  readonly hasCreatedAt: boolean
  readonly hasRunAt: boolean
  /** Millrace's own table, by its fence: a job that ends there also says when, which its desk and retention go by. */
  readonly isMillrace: boolean
}

export const EVENTS_TABLE = 'job_events'

/** What the reaper reads or writes: `id`, `status` and columns of document E. */
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
/** What claims and heartbeats need besides, for the hard deadline (X179). */
const NEEDED_FOR_LEASES = [...NEEDED, 'expected_duration_ms', 'started_at']

/** The reaper can be put before tables that have just the columns of document E; leases need one more. */
export type Use = 'reaping' | 'leases'

/** Looks at each table once, and again after the database has said that it is not what it was. */
export class Shapes {
  readonly #database: Database
  readonly #schema: string | null
  readonly #known = new Map<string, Shape>()

  constructor(database: Database, { schema }: Pick<Place, 'schema'>) {
    this.#database = database
    this.#schema = schema
  }

  /** Throws an EngineError with `ERR_SCHEMA_MISSING` that names what is not there. */
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

/** Other people's columns of the same name may hold anything. */
function isTime(type: string | undefined): boolean {
  return type?.startsWith('timestamp ') === true
}

function incomplete(table: string, missing: readonly string[]): EngineError {
  const what =
    missing.length === 0 ? `there is no table '${table}'` : `table '${table}' has no column ${missing.join(', ')}`
  const advice = table === EVENTS_TABLE ? '' : ` --tables ${table}`
  return new EngineError('ERR_SCHEMA_MISSING', `${what}; add what is missing with 'millrace migrate${advice}'`)
}

/** The tables of document E. Others are worked on only where a configuration names them. */
export type JobTable = 'jobs' | 'asr_jobs'

/** In the order in which a run of the reaper handles them. */
export const JOB_TABLES: readonly JobTable[] = Object.freeze(['jobs', 'asr_jobs'])

/** A table's name for a statement. Without a schema, the connection's search_path decides, as it does for the user. */
export function qualified(table: string, schema: string | null): string {
  return schema === null ? quote(table) : `${quote(schema)}.${quote(table)}`
}

/** Where the tables of one configuration are. */
export interface Place<Table extends string = JobTable> {
  readonly tables: readonly Table[]
  readonly schema: string | null
}

export interface PlaceOptions<Table extends string = JobTable> {
  /** `jobs` and `asr_jobs` unless told. Only these are ever touched. */
  readonly tables?: readonly Table[]
  /** The schema of the tables and of `job_events`; the connection's search_path unless told. */
  readonly schema?: string
}

/** Throws an OptionError for names that cannot be meant. */
export function placeOf<Table extends string>(options: PlaceOptions<Table>): Place<Table | JobTable> {
  const tables: readonly (Table | JobTable)[] = options.tables ?? JOB_TABLES
  if (tables.length === 0) throw new OptionError(`'tables' is empty; name at least one table, such as 'jobs'`)
  const twice = tables.find((name, index) => tables.indexOf(name) !== index)
  if (twice !== undefined) throw new OptionError(`'tables' names '${twice}' twice; name each table once`)
  for (const name of tables) quote(name)
  if (options.schema !== undefined) quote(options.schema)
  return { tables, schema: options.schema ?? null }
}

/** The columns of a table by its quoted name. None: there is no such table. */
export const COLUMNS_OF = `
select attrelid::oid::text as oid, attname::text as name, format_type(atttypid, null) as type
from pg_attribute
where attrelid = to_regclass($1) and attnum > 0 and not attisdropped`

/** The schema that search_path leads to. */
export const SCHEMA_OF = `
select nspname::text as schema from pg_class join pg_namespace on pg_namespace.oid = relnamespace
where pg_class.oid = to_regclass($1)`
