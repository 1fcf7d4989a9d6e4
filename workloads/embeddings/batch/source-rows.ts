/** The rows that texts come from, which get the ids of their vectors. */
import { NonRetryable, OptionError } from '../../../src/errors.ts'
import type { WorkloadDatabase } from '../../database/database.ts'
import { isUuid } from '../uuid.ts'

/** A column that jobs may write. No other one is touched, whatever a payload says. */
export interface SourceColumn {
  /** On Postgres with its schema, if it is not in the search path: `app.documents`. */
  readonly table: string
  /** Gets the id of the vector. */
  readonly column: string
  /** The column that a `sourceId` is compared with. Default: id. */
  readonly id?: string
  /** Postgres: the type of both columns. Default: uuid. */
  readonly type?: 'uuid' | 'text'
}

export type SourceDatabase = Pick<WorkloadDatabase, 'dialect' | 'write'>

export interface SourceUpdate {
  readonly id: string
  readonly embeddingId: string
}

const NAME = /^[\p{L}_][\p{L}\p{N}_]*$/u
const TABLE = /^[\p{L}_][\p{L}\p{N}_]*(?:\.[\p{L}_][\p{L}\p{N}_]*)?$/u

export class SourceRows {
  readonly #database: SourceDatabase | null
  readonly #columns: readonly SourceColumn[]

  constructor(database: SourceDatabase | null, columns: readonly SourceColumn[]) {
    for (const { table, column, id = 'id' } of columns) {
      if (TABLE.test(table) && NAME.test(column) && NAME.test(id)) continue
      throw new OptionError(
        `the source '${table}.${column}' has a name with other characters than letters, digits and underscores; give a view with plain names`,
      )
    }
    if (columns.length > 0 && database === null) {
      throw new OptionError(`'sources' are given without a database; give the database that holds their tables`)
    }
    this.#database = database
    this.#columns = columns
  }

  /** What a payload names, if it is allowed. Null where it names nothing to update. */
  target({
    updateTable,
    updateColumn,
  }: {
    readonly updateTable?: string | undefined
    readonly updateColumn?: string | undefined
  }): SourceTarget | null {
    if (updateTable === undefined || updateColumn === undefined) return null
    const allowed = this.#columns.find(({ table, column }) => table === updateTable && column === updateColumn)
    if (allowed !== undefined && this.#database !== null) return new SourceTarget(this.#database, allowed)
    throw new NonRetryable(
      `jobs may not write the column '${updateColumn.slice(0, 100)}' of '${updateTable.slice(0, 100)}'; add the pair to the worker's 'sources' and replay the job`,
    )
  }
}

export class SourceTarget {
  readonly #database: SourceDatabase
  readonly #source: Required<SourceColumn>

  constructor(database: SourceDatabase, { table, column, id = 'id', type = 'uuid' }: SourceColumn) {
    this.#database = database
    this.#source = { table, column, id, type }
  }

  /** Postgres would refuse the whole statement, after the vectors were paid for. */
  check(ids: readonly string[]): void {
    const { table, type } = this.#source
    if (this.#database.dialect.name !== 'postgres' || type !== 'uuid') return
    const wrong = ids.find((id) => !isUuid(id))
    if (wrong === undefined) return
    throw new NonRetryable(
      `'${wrong}' is not a UUID, which the rows of '${table}' are found by; correct the item, or set the source's 'type' to 'text'`,
    )
  }

  /** One statement. Rows that have the id already are not written again. */
  async update(updates: readonly SourceUpdate[]): Promise<void> {
    const { table, column, id, type } = this.#source
    const [rows, target, key] = [quoted(table), quoted(column), quoted(id)]
    if (this.#database.dialect.name === 'sqlite') {
      await this.#database.write([
        {
          sql: `UPDATE ${rows} AS t SET ${target} = u.embedding_id
            FROM (SELECT value ->> 0 AS id, value ->> 1 AS embedding_id FROM json_each($1)) AS u
            WHERE t.${key} = u.id AND t.${target} IS NOT u.embedding_id`,
          values: [JSON.stringify(updates.map((update) => [update.id, update.embeddingId]))],
        },
      ])
      return
    }
    await this.#database.write([
      {
        sql: `UPDATE ${rows} AS t SET ${target} = u.embedding_id
          FROM UNNEST($1::${type}[], $2::${type}[]) AS u(id, embedding_id)
          WHERE t.${key} = u.id AND t.${target} IS DISTINCT FROM u.embedding_id`,
        values: [arrayText(updates.map((update) => update.id)), arrayText(updates.map((update) => update.embeddingId))],
      },
    ])
  }
}

/** The names were checked, so they hold no quote. */
function quoted(name: string): string {
  return name
    .split('.')
    .map((part) => `"${part}"`)
    .join('.')
}

/** An array as Postgres writes it. */
function arrayText(values: readonly string[]): string {
  return `{${values.map((value) => `"${value.replaceAll(/["\\]/g, '\\$&')}"`).join(',')}}`
}
