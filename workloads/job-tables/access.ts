import { toIso } from '../../src/time/iso.ts'
import { type Database, isSchemaFault, type Row, refused, type ServiceResult, toRefusal } from './database.ts'
import { readTableSettings, type TableSettings } from './settings.ts'
import { type JobTable, type Place, type PlaceOptions, placeOf, type Shape, Shapes, type Use } from './shape.ts'

export interface AccessOptions<Table extends string = JobTable> extends PlaceOptions<Table> {
  /** The figures of document E: `readTableSettings(process.env)`, or the built-in ones unless told. */
  readonly settings?: TableSettings
  /** Replaces the database's clock: for tests, never in production, where machines disagree about the hour. */
  readonly nowMs?: () => number
}

/** The tables of one configuration in one database: what all functions for workers, and the reaper, stand on. */
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

  /** The parameter of every statement: null leaves the time to the database. */
  now(): string | null {
    return this.#nowMs === null ? null : toIso(this.#nowMs())
  }

  async rows(statement: string, values: unknown[]): Promise<readonly Row[]> {
    return (await this.#database.query(statement, values)).rows
  }

  /** Throws what the database throws, or an EngineError that names the missing columns. */
  async shaped<Answer>(table: string, use: Use, work: (shape: Shape) => Promise<Answer>): Promise<Answer> {
    try {
      return await work(await this.#shapes.of(table, use))
    } catch (error) {
      if (isSchemaFault(error)) this.#shapes.forget()
      throw error
    }
  }

  /** For the functions that return a ServiceResult: a table that was not configured and every fault become values. */
  async answer<Value>(
    table: string,
    during: string,
    work: (shape: Shape) => Promise<ServiceResult<Value>>,
    use: Use = 'leases',
  ): Promise<ServiceResult<Value>> {
    const { tables } = this.place
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
