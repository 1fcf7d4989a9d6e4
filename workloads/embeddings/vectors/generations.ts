import { maybe, numberOf, textOf } from '../../database/columns.ts'
import type { Row, WorkloadDatabase, WorkloadTransaction } from '../../database/database.ts'
import { VectorsRefused } from '../vector-store.ts'
import type { Generation, VectorTables } from './tables.ts'

/** What a namespace would be made with, or must be. */
export interface Kind {
  readonly model: string | null
  readonly dimensions: number
}

const COLUMNS = 'generation, namespace, state, model, dimensions'

/** The sets of vectors that each namespace has, and which of them is active. */
export class Generations {
  readonly #database: WorkloadDatabase
  readonly #tables: VectorTables

  constructor(database: WorkloadDatabase, tables: VectorTables) {
    this.#database = database
    this.#tables = tables
  }

  async active(namespace: string): Promise<Generation | null> {
    const [row] = await this.#database.read(
      `SELECT ${COLUMNS} FROM {embedding_generations} WHERE namespace = $1 AND state = 'active'`,
      [namespace],
    )
    return row === undefined ? null : generationOf(row)
  }

  async all(): Promise<readonly Generation[]> {
    return (
      await this.#database.read(`SELECT ${COLUMNS} FROM {embedding_generations} ORDER BY namespace, generation`)
    ).map(generationOf)
  }

  /** Runs on the active generation. Where it is replaced and dropped below a read, the read runs on its successor. */
  async reading<Answer>(namespace: string, read: (generation: Generation) => Promise<Answer>): Promise<Answer | null> {
    for (;;) {
      const generation = await this.active(namespace)
      if (generation === null) return null
      try {
        return await read(generation)
      } catch (error) {
        if ((await this.active(namespace))?.generation === generation.generation) throw error
      }
    }
  }

  /** In a transaction: this generation stays what it is until the end of it. */
  async locked(
    { rows }: WorkloadTransaction,
    namespace: string,
    state: 'active' | 'building',
    lock = this.#tables.forShare,
  ): Promise<Generation | null> {
    const select = `SELECT ${COLUMNS} FROM {embedding_generations} WHERE namespace = $1 AND state = $2`
    for (;;) {
      const [row] = await rows(`${select}${lock}`, [namespace, state])
      if (row !== undefined) return generationOf(row)
      // A row that lost this state while the statement waited for its lock is left out, and its successor was not seen yet.
      if ((await rows(select, [namespace, state])).length === 0) return null
    }
  }

  /** In a transaction: the other generations of its namespace, which stay what they are until the end of it. */
  async besides({ rows }: WorkloadTransaction, { namespace, generation }: Generation): Promise<readonly number[]> {
    const select = `SELECT generation FROM {embedding_generations} WHERE namespace = $1 AND generation <> $2 ORDER BY generation`
    return (await rows(`${select}${this.#tables.forShare}`, [namespace, generation])).map((row) =>
      numberOf(row, 'generation'),
    )
  }

  /** The one in this state; it is made if there is none. Of two processes that make it at once, one waits for the other. */
  async lockedOrNew(
    transaction: WorkloadTransaction,
    namespace: string,
    state: 'active' | 'building',
    kind: Kind,
  ): Promise<Generation> {
    const known = await this.locked(transaction, namespace, state)
    if (known !== null) return known
    const [row] = await transaction.rows(
      `INSERT INTO {embedding_generations} (namespace, state, model, dimensions) VALUES ($1, $2, $3, $4)
       ON CONFLICT DO NOTHING RETURNING ${COLUMNS}`,
      [namespace, state, kind.model, kind.dimensions],
    )
    if (row === undefined) return this.lockedOrNew(transaction, namespace, state, kind)
    const generation = generationOf(row)
    await this.#tables.create(transaction, generation)
    return generation
  }

  /** A namespace that was first written without the name of a model takes the first one that is given. */
  async adopt({ rows }: WorkloadTransaction, generation: Generation, model: string | null): Promise<void> {
    if (model === null || generation.model !== null) return
    await rows('UPDATE {embedding_generations} SET model = $2 WHERE generation = $1 AND model IS NULL', [
      ...[generation.generation, model],
    ])
  }

  setState({ rows }: WorkloadTransaction, generation: number, state: Generation['state']): Promise<unknown> {
    return rows('UPDATE {embedding_generations} SET state = $2 WHERE generation = $1', [generation, state])
  }

  /** Removes it with its vectors. */
  async drop(transaction: WorkloadTransaction, generation: number): Promise<void> {
    await this.#tables.drop(transaction, generation)
    await transaction.rows('DELETE FROM {embedding_generations} WHERE generation = $1', [generation])
  }
}

/** Vectors of two models cannot be compared, and those of two lengths not even stored. */
export function checkKind({ namespace, model, dimensions }: Generation, kind: Kind): void {
  const advice = `use another namespace, or move this one to another model with 'embedding-reindex'`
  if (kind.dimensions !== dimensions) {
    throw new VectorsRefused(
      `the namespace '${namespace}' holds vectors of ${dimensions} dimensions, and these have ${kind.dimensions}; ${advice}`,
    )
  }
  if (kind.model !== null && model !== null && kind.model !== model) {
    throw new VectorsRefused(
      `the namespace '${namespace}' holds vectors of the model '${model}', and these are of '${kind.model}'; ${advice}`,
    )
  }
}

function generationOf(row: Row): Generation {
  return {
    generation: numberOf(row, 'generation'),
    namespace: textOf(row, 'namespace'),
    // The table's CHECK allows no other.
    state: textOf(row, 'state') as Generation['state'],
    model: maybe(textOf, row, 'model'),
    dimensions: numberOf(row, 'dimensions'),
  }
}
