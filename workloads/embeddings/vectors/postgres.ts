/** Vectors in Postgres with pgvector: a table with an HNSW index for each generation. */
import { jsonOf, numberOf, textOf } from '../../database/columns.ts'
import type { Row, WorkloadDatabase, WorkloadTransaction } from '../../database/database.ts'
import type { Metadata, Neighbour } from '../vector-store.ts'
import type { NewVector } from './entries.ts'
import {
  type Generation,
  type OptimizeCall,
  type Query,
  replacingOlder,
  type SourceChanges,
  tableOf,
  type VectorTables,
} from './tables.ts'

/** What pgvector's HNSW can index, as 32-bit and as 16-bit numbers. */
const INDEXED_MAX = 2_000
const INDEXED_HALF_MAX = 4_000
/** How many rows a filter may leave for them all to be compared. More of them are found through the index. */
const FILTERED_EXACT_MAX = 10_000
/** Candidates that the index keeps while it searches: more of them find more of the true neighbours, and take longer. */
const CANDIDATES_MIN = 100
const CANDIDATES_MAX = 1_000

interface Indexed {
  /** What the index is made of; a search uses it only with the same expression. */
  expression(vector: string): string
  readonly operators: string
}

function indexed(dimensions: number): Indexed | null {
  if (dimensions <= INDEXED_MAX) {
    return { expression: (vector) => `${vector}::vector(${dimensions})`, operators: 'vector_cosine_ops' }
  }
  if (dimensions > INDEXED_HALF_MAX) return null
  // A 16-bit number ends at 65 504, and below 6e-8 it is 0: only vectors of the length 1 are sure to fit.
  return {
    expression: (vector) => `l2_normalize(${vector})::halfvec(${dimensions})`,
    operators: 'halfvec_cosine_ops',
  }
}

export class PostgresVectors implements VectorTables {
  readonly forShare = ' FOR SHARE'
  readonly vectorColumn = 'embedding::text AS embedding'
  readonly #database: WorkloadDatabase
  /** With a longer time limit for each statement. */
  readonly #maintenance: () => Promise<WorkloadDatabase>

  constructor(database: WorkloadDatabase, maintenance: () => Promise<WorkloadDatabase>) {
    this.#database = database
    this.#maintenance = maintenance
  }

  async searchMethod({ dimensions }: Generation): Promise<string> {
    return indexed(dimensions) === null ? 'exact, by reading all rows' : 'approximate, with an HNSW index'
  }

  async create({ rows }: WorkloadTransaction, { generation, dimensions }: Generation): Promise<void> {
    const [table, name] = [tableOf(generation), `embedding_vectors_${generation}`]
    await rows(`CREATE TABLE ${table} (
      id TEXT PRIMARY KEY, seq BIGINT NOT NULL, version_id TEXT, metadata JSONB NOT NULL,
      change BIGINT NOT NULL, source_change BIGINT NOT NULL, embedding vector(${dimensions}) NOT NULL)`)
    await rows(`CREATE INDEX ${name}_change ON ${table} (change)`)
    await rows(`CREATE INDEX ${name}_metadata ON ${table} USING gin (metadata jsonb_path_ops)`)
    const index = indexed(dimensions)
    if (index === null) return
    await rows(
      `CREATE INDEX ${name}_hnsw ON ${table} USING hnsw ((${index.expression('embedding')}) ${index.operators})`,
    )
  }

  async drop({ rows }: WorkloadTransaction, generation: number): Promise<void> {
    await rows(`DROP TABLE IF EXISTS ${tableOf(generation)}`)
  }

  async put(
    { rows }: WorkloadTransaction,
    { generation }: Generation,
    vectors: readonly NewVector[],
    sourceChanges?: SourceChanges,
  ): Promise<ReadonlySet<string>> {
    const table = tableOf(generation)
    const entries = vectors.map(({ id, seq, versionId, metadata, vector }) => ({
      ...{ id, seq, version_id: versionId, metadata: JSON.parse(metadata) as unknown },
      ...{ source_change: sourceChanges?.get(id) ?? 0, embedding: toText(vector) },
    }))
    const written = await rows(
      `INSERT INTO ${table} AS stored (id, seq, version_id, metadata, change, source_change, embedding)
       SELECT id, seq, version_id, metadata, nextval('{embedding_changes}'), source_change, embedding::vector
       FROM jsonb_to_recordset($1::jsonb)
         AS entry(id text, seq bigint, version_id text, metadata jsonb, source_change bigint, embedding text)
         ${replacingOlder('stored', sourceChanges)} RETURNING id`,
      [JSON.stringify(entries)],
    )
    return new Set(written.map((row) => textOf(row, 'id')))
  }

  async removed(): Promise<void> {
    // Every search reads the table, so nothing has to be told.
  }

  vectorOf(row: Row): Float32Array {
    return Float32Array.from(JSON.parse(textOf(row, 'embedding')) as number[])
  }

  async search(generation: Generation, query: Query): Promise<readonly Neighbour[]> {
    const table = tableOf(generation.generation)
    const index = indexed(generation.dimensions)
    const filter = JSON.stringify(Object.fromEntries(query.filter))
    const isExact = index === null || (query.filter.length > 0 && (await this.#isRare(table, filter)))
    // Adding zero keeps the planner from the index, which would find some of the rows that a narrow filter leaves, not all.
    const order = isExact
      ? '(embedding <=> $1::vector) + 0'
      : `${index.expression('embedding')} <=> ${index.expression('$1::vector')}`
    const candidates = Math.min(Math.max(query.limit * 4, CANDIDATES_MIN), CANDIDATES_MAX)
    const found = await this.#database.transaction(async ({ rows }) => {
      if (!isExact) {
        await rows(
          `SELECT set_config('hnsw.ef_search', $1, true), set_config('hnsw.iterative_scan', 'strict_order', true)`,
          [String(candidates)],
        )
      }
      return rows(
        `SELECT id, metadata, 1 - (embedding <=> $1::vector) AS score FROM ${table}
         ${query.filter.length === 0 ? '' : 'WHERE metadata @> $2::jsonb'} ORDER BY ${order} LIMIT ${query.limit}`,
        [toText(query.vector), ...(query.filter.length === 0 ? [] : [filter])],
      )
    })
    return (
      found
        .map((row) => ({
          id: textOf(row, 'id'),
          score: numberOf(row, 'score'),
          metadata: jsonOf(row, 'metadata') as Metadata,
        }))
        .filter(({ score }) => score >= query.scoreMin)
        // 16-bit numbers have ordered them roughly.
        .sort((one, other) => other.score - one.score)
    )
  }

  async #isRare(table: string, filter: string): Promise<boolean> {
    const [row] = await this.#database.read(
      `SELECT count(*) AS count FROM
        (SELECT 1 FROM ${table} WHERE metadata @> $1::jsonb LIMIT ${FILTERED_EXACT_MAX + 1}) AS matching`,
      [filter],
    )
    return numberOf(row ?? {}, 'count') <= FILTERED_EXACT_MAX
  }

  async optimize(generations: readonly Generation[], call: OptimizeCall): Promise<readonly string[]> {
    const done: string[] = []
    const database = await this.#maintenance()
    try {
      for (const generation of generations) {
        if (call.signal?.aborted === true) break
        done.push(await this.#tidy(database, generation, call.threshold))
      }
    } finally {
      await database.close()
    }
    return done
  }

  /** Deleted and replaced rows stay in the table and in the index, and every search passes them, until both are rebuilt. */
  async #tidy(database: WorkloadDatabase, { generation, dimensions }: Generation, threshold: number): Promise<string> {
    const [table, name] = [tableOf(generation), `embedding_vectors_${generation}`]
    await dropInvalid(database, table)
    const [row] = await database.read(
      `SELECT pg_stat_get_live_tuples(oid) AS live, pg_stat_get_dead_tuples(oid) AS dead
       FROM pg_class WHERE oid = '${table}'::regclass`,
    )
    const [live, dead] = [numberOf(row ?? {}, 'live'), numberOf(row ?? {}, 'dead')]
    if (dead === 0 || live / (live + dead) >= threshold)
      return `${name}: ${dead} dead rows of ${live + dead}, left alone`
    // Statements of their own, because neither runs inside of a transaction.
    await database.write([{ sql: `VACUUM (ANALYZE) ${table}` }])
    if (indexed(dimensions) !== null) await database.write([{ sql: `REINDEX INDEX CONCURRENTLY {${name}_hnsw}` }])
    return `${name}: ${dead} dead rows of ${live + dead} removed, index rebuilt`
  }

  async close(): Promise<void> {
    // The store closes the database.
  }
}

function toText(vector: Float32Array): string {
  return `[${vector.join(',')}]`
}

/** A rebuild that was interrupted leaves an index behind that costs every write and helps no search. */
async function dropInvalid(database: WorkloadDatabase, table: string): Promise<void> {
  const invalid = await database.read(
    `SELECT relname FROM pg_index JOIN pg_class ON oid = indexrelid WHERE indrelid = '${table}'::regclass AND NOT indisvalid`,
  )
  for (const row of invalid) {
    await database.write([{ sql: `DROP INDEX CONCURRENTLY IF EXISTS {${textOf(row, 'relname')}}` }])
  }
}
