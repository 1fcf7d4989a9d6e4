import { OptionError } from '../../../errors.ts'
import { quote } from '../names.ts'

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
