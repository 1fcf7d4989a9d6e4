import { toIso } from '../../src/time/iso.ts'
import { type Database, isSchemaFault, numberOf, type Row, refused, type ServiceResult, toRefusal } from './database.ts'
import { readTableSettings, type TableSettings } from './settings.ts'
import {
  columnsOf,
  type JobTable,
  type Place,
  type PlaceOptions,
  placeOf,
  qualified,
  type Shape,
  Shapes,
  type Use,
} from './shape.ts'
import { AT, epochMs, moment } from './sql.ts'

export interface AccessOptions<Table extends string = JobTable> extends PlaceOptions<Table> {
  /** Such as `readTableSettings(process.env)`. Default: the built-in values. */
  readonly settings?: TableSettings
  /** Replaces the database's clock, for tests only: the clocks of machines differ. */
  readonly nowMs?: () => number
}

/** The configured tables in one database, for the worker functions and the reaper. */
export class TableAccess {
  readonly place: Place<string>
  readonly settings: TableSettings
  readonly #database: Database
  readonly #shapes: Shapes
  readonly #nowMs: (() => number) | null

  constructor(database: Database, options: AccessOptions<string>) {
    this.place = placeOf(options)
    this.settings = options.settings ?? readTableSettings({})
    this.#database = database
    this.#shapes = new Shapes(database, this.place)
    this.#nowMs = options.nowMs ?? null
  }

  /** A parameter of every statement. Null means the database's time. */
  now(): string | null {
    return this.#nowMs === null ? null : toIso(this.#nowMs())
  }

  /** The time of the statements. */
  async serverMs(): Promise<number> {
    const [row = {}] = await this.rows(`with ${moment('$1')} select ${epochMs(AT)} as now_ms`, [this.now()])
    return numberOf(row, 'now_ms') ?? 0
  }

  async rows(statement: string, values: unknown[]): Promise<readonly Row[]> {
    return (await this.#database.query(statement, values)).rows
  }

  /** The types of the columns of a table; empty if it does not exist. */
  columns(table: string): Promise<ReadonlyMap<string, string>> {
    return columnsOf(this.#database, qualified(table, this.place.schema))
  }

  /** Rejects with the database's error, or with an EngineError that names the missing columns. */
  async shaped<Answer>(table: string, use: Use, work: (shape: Shape) => Promise<Answer>): Promise<Answer> {
    try {
      return await work(await this.#shapes.of(table, use))
    } catch (error) {
      if (isSchemaFault(error)) this.#shapes.forget()
      throw error
    }
  }

  /** For functions that return a ServiceResult: an unconfigured table and every fault become values. */
  async answer<Value>(
    table: string,
    during: string,
    work: (shape: Shape) => Promise<ServiceResult<Value>>,
    use: Use = 'leases',
  ): Promise<ServiceResult<Value>> {
    const { tables } = this.place
    if (table === '') return refused('unknown_table', `name the table, one of ${tables.join(', ')}`)
    if (!tables.includes(table)) {
      return refused('unknown_table', `'${table}' is not one of the tables configured here: ${tables.join(', ')}`)
    }
    try {
      return await this.shaped(table, use, work)
    } catch (error) {
      return toRefusal(error, `${during} in '${table}'`)
    }
  }
}
