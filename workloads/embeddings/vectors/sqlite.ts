/** Vectors in an SQLite file: an ordinary table, and an exact search. */
import { bytesOf, jsonOf, numberOf, textOf } from '../../database/columns.ts'
import type { Row, WorkloadDatabase, WorkloadTransaction } from '../../database/database.ts'
import type { Metadata, Neighbour } from '../vector-store.ts'
import { type NewVector, normalised } from './entries.ts'
import { Best, dot, othersTurn } from './matrix.ts'
import { MatrixCache } from './matrix-cache.ts'
import { type Direction, SqliteRows, toBytes, toVector } from './sqlite-rows.ts'
import { openSqliteVec, type SqliteVec } from './sqlite-vec.ts'
import {
  type Generation,
  type OptimizeCall,
  type Query,
  replacingOlder,
  type SourceChanges,
  tableOf,
  type VectorTables,
} from './tables.ts'

/** A filter that leaves fewer rows is answered without loading the whole generation into memory. */
const ROWS_WITHOUT_MATRIX = 2_000
/** Pages that one step gives back to the file system. */
const PAGES_PER_STEP = 1_000

export interface SqliteVectorsOptions {
  /** Memory for vectors of all namespaces together. */
  readonly cacheBytes: number
  /** Whether sqlite-vec is used if it can be loaded. */
  readonly extension: boolean
}

export class SqliteVectors implements VectorTables {
  readonly forShare = ''
  readonly vectorColumn = 'embedding'
  readonly #database: WorkloadDatabase
  readonly #extension: boolean
  readonly #cache: MatrixCache
  #vec: Promise<SqliteVec | null> | null = null

  constructor(database: WorkloadDatabase, { cacheBytes, extension }: SqliteVectorsOptions) {
    this.#database = database
    this.#extension = extension
    this.#cache = new MatrixCache(database, cacheBytes)
  }

  async searchMethod({ dimensions }: Generation, count: number): Promise<string> {
    if (this.#cache.fits(dimensions, count)) return 'exact, in memory'
    return (await this.#openVec()) === null ? 'exact, by reading all rows' : 'exact, with sqlite-vec'
  }

  async create({ rows }: WorkloadTransaction, { generation }: Generation): Promise<void> {
    const table = tableOf(generation)
    await rows(`CREATE TABLE ${table} (
      number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, seq INTEGER NOT NULL, version_id TEXT, metadata TEXT NOT NULL,
      change INTEGER NOT NULL, source_change INTEGER NOT NULL, embedding BLOB NOT NULL)`)
    await rows(`CREATE INDEX embedding_vectors_${generation}_change ON ${table} (change)`)
    // Filters read this instead of the rows, which are ten times as long because of their vectors.
    await rows(`CREATE INDEX embedding_vectors_${generation}_metadata ON ${table} (number, metadata)`)
  }

  async drop({ rows }: WorkloadTransaction, generation: number): Promise<void> {
    this.#cache.forget(generation)
    await rows(`DROP TABLE IF EXISTS ${tableOf(generation)}`)
  }

  async put(
    { rows }: WorkloadTransaction,
    { generation }: Generation,
    vectors: readonly NewVector[],
    sourceChanges?: SourceChanges,
  ): Promise<ReadonlySet<string>> {
    const table = tableOf(generation)
    const [counted] = await rows(
      'UPDATE {embedding_generations} SET changes = changes + 1 WHERE generation = $1 RETURNING changes',
      [generation],
    )
    const change = numberOf(counted ?? {}, 'changes')
    const written = new Set<string>()
    for (const { id, seq, versionId, metadata, vector } of vectors) {
      const stored = await rows(
        `INSERT INTO ${table} (id, seq, version_id, metadata, change, source_change, embedding)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ${replacingOlder(table, sourceChanges)} RETURNING number`,
        [id, seq, versionId, metadata, change, sourceChanges?.get(id) ?? 0, toBytes(vector)],
      )
      if (stored.length > 0) written.add(id)
    }
    return written
  }

  async removed({ rows }: WorkloadTransaction, { generation }: Generation): Promise<void> {
    await rows('UPDATE {embedding_generations} SET removals = removals + 1 WHERE generation = $1', [generation])
  }

  vectorOf(row: Row): Float32Array {
    return toVector(bytesOf(row, 'embedding'))
  }

  async search(generation: Generation, query: Query): Promise<readonly Neighbour[]> {
    const table = tableOf(generation.generation)
    const rows = new SqliteRows(this.#database, table)
    const best = new Best(query.limit, query.scoreMin)
    const direction = normalised(query.vector)
    const chosen = query.filter.length === 0 ? null : await rows.matching(query.filter)
    const isSmall = chosen !== null && chosen.length <= ROWS_WITHOUT_MATRIX
    if (!isSmall && this.#cache.fits(generation.dimensions, await rows.count())) {
      await this.#cache.use(generation, (matrix) => matrix.search(direction, best, chosen))
    } else if (chosen !== null) await offer(rows.some(chosen), direction, best)
    else {
      const vec = await this.#openVec()
      await (vec === null ? offer(rows.all(), direction, best) : vec.search(table, direction, best))
    }
    return neighboursOf(await rows.found(best.numbers, query.filter), direction, query.scoreMin)
  }

  async optimize(_: readonly Generation[], { threshold, signal }: OptimizeCall): Promise<readonly string[]> {
    const pragma = async (name: string): Promise<number> =>
      numberOf((await this.#database.read(`PRAGMA ${name}`))[0] ?? {}, name)
    const done = ['PRAGMA optimize']
    await this.#database.write([{ sql: 'PRAGMA optimize' }])
    const [pages, free] = [await pragma('page_count'), await pragma('freelist_count')]
    if (free === 0 || 1 - free / pages >= threshold) return done
    // In small steps, because each holds the write lock.
    for (let freed = 0; freed < free && signal?.aborted !== true; freed += PAGES_PER_STEP) {
      await this.#database.write([{ sql: `PRAGMA incremental_vacuum(${PAGES_PER_STEP})` }])
      await othersTurn()
    }
    const left = await pragma('freelist_count')
    return [...done, `${free - left} of ${free} free pages given back`]
  }

  async close(): Promise<void> {
    ;(await this.#vec)?.close()
    this.#cache.clear()
  }

  #openVec(): Promise<SqliteVec | null> {
    this.#vec ??= this.#extension ? openSqliteVec(this.#database) : Promise.resolve(null)
    return this.#vec
  }
}

/**
 * Compared once more, as they are stored now: a row that was removed while the search ran may have left its number to another
 * one, which the filter would not let through.
 */
function neighboursOf(rows: readonly Row[], direction: Float32Array, scoreMin: number): readonly Neighbour[] {
  return rows
    .map((row) => ({
      id: textOf(row, 'id'),
      score: Math.min(1, dot(direction, normalised(toVector(bytesOf(row, 'embedding'))), 0)),
      metadata: jsonOf(row, 'metadata') as Metadata,
    }))
    .filter(({ score }) => score >= scoreMin)
    .sort((one, other) => other.score - one.score)
}

async function offer(pages: AsyncGenerator<readonly Direction[]>, direction: Float32Array, best: Best): Promise<void> {
  for await (const page of pages) for (const { number, vector } of page) best.offer(number, dot(direction, vector, 0))
}
