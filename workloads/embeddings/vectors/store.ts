import { withParameters } from '../../../src/engines/postgres/options.ts'
import { OptionError } from '../../../src/errors.ts'
import { type OptionNames, refuseUnknown } from '../../../src/job/known-options.ts'
import { checkListLimit } from '../../../src/job/list-limit.ts'
import type { Clock } from '../../../src/time/clock.ts'
import { jsonOf, maybe, numberOf, textOf } from '../../database/columns.ts'
import { openDatabase, type WorkloadDatabase } from '../../database/database.ts'
import { rewriteDatabase } from '../../database/rewrite.ts'
import { isStorable, textList } from '../../database/text.ts'
import type { Optimizable } from '../index-optimization.ts'
import type { Vector } from '../options.ts'
import type {
  Metadata,
  Neighbour,
  OfModel,
  SearchOptions,
  StoredVector,
  VectorEntry,
  VectorStore,
} from '../vector-store.ts'
import { checkNamespace, readEntries, readVector } from './entries.ts'
import { checkKind, Generations } from './generations.ts'
import { PostgresVectors } from './postgres.ts'
import { embeddingsSchema } from './schema.ts'
import { SqliteVectors } from './sqlite.ts'
import { type Generation, type OptimizeCall, type Query, tableOf, type VectorTables } from './tables.ts'

export interface VectorStoreOptions {
  /** Create or update the tables; default: true for SQLite, false for Postgres: `millrace migrate --workload embeddings`. */
  readonly migrate?: boolean
  /** SQLite: memory for vectors of namespaces that are searched. A larger namespace is read at every search. Default: 256 MiB. */
  readonly cacheBytes?: number
  /** SQLite: use the sqlite-vec extension if it can be loaded. Default: true. */
  readonly extension?: boolean
  readonly clock?: Clock
}

const SEARCH_OPTIONS: OptionNames<SearchOptions> = { limit: true, filter: true, scoreMin: true, model: true }
const UPSERT_OPTIONS: OptionNames<OfModel> = { model: true }

const OPTIONS: OptionNames<VectorStoreOptions> = { migrate: true, cacheBytes: true, extension: true, clock: true }

export interface NamespaceInfo {
  readonly namespace: string
  readonly model: string | null
  readonly dimensions: number
  readonly count: number
  /** Such as 'exact, in memory' or 'approximate, with an HNSW index'. */
  readonly search: string
  /** The model that it is moving to. Null when it is not. */
  readonly movingTo: string | null
}

const CACHE_BYTES = 256 * 1024 * 1024
const LIMIT_DEFAULT = 10
const LIMIT_MAX = 1_000
/** Rebuilding the index of a large table takes minutes. */
const MAINTENANCE_MS = 3_600_000

/**
 * Opens the vectors beside the jobs: in the same SQLite file, or the same Postgres database, which needs pgvector.
 *
 * @example
 * const vectors = await openVectorStore('sqlite:./millrace.db')
 * await vectors.upsert('documents', [{ id: 'readme', vector: [0.1, 0.7], metadata: { lang: 'en' } }])
 * const nearest = await vectors.search('documents', [0.2, 0.6], { limit: 5, filter: { lang: 'en' } })
 */
export async function openVectorStore(url: string, options: VectorStoreOptions = {}): Promise<SqlVectorStore> {
  refuseUnknown(options, OPTIONS, 'openVectorStore')
  const { migrate, clock, cacheBytes = CACHE_BYTES, extension = true } = options
  if (!Number.isSafeInteger(cacheBytes) || cacheBytes < 0) {
    throw new OptionError(`'cacheBytes' is ${cacheBytes}; give a whole number from 0`)
  }
  const database = await openDatabase(url, {
    schemas: [embeddingsSchema],
    ...(migrate !== undefined && { migrate }),
    ...(clock !== undefined && { clock }),
  })
  const tables =
    database.dialect.name === 'sqlite'
      ? new SqliteVectors(database, { cacheBytes, extension })
      : new PostgresVectors(database, () => openDatabase(patient(url), { schemas: [] }))
  return new SqlVectorStore(database, tables)
}

/** The same URL with a time limit for maintenance, and one connection. */
function patient(url: string): string {
  return withParameters(url, { timeout: String(MAINTENANCE_MS), pool: '1' })
}

/** Use `openVectorStore`. */
export class SqlVectorStore implements VectorStore, Optimizable {
  readonly name = 'vectors'
  readonly database: WorkloadDatabase
  readonly tables: VectorTables
  readonly generations: Generations

  constructor(database: WorkloadDatabase, tables: VectorTables) {
    this.database = database
    this.tables = tables
    this.generations = new Generations(database, tables)
  }

  async upsert(namespace: string, entries: readonly VectorEntry[], options: OfModel = {}): Promise<readonly boolean[]> {
    checkNamespace(namespace)
    refuseUnknown(options, UPSERT_OPTIONS, 'upsert')
    const { model = null } = options
    if (entries.length === 0) return []
    const { dimensions, newest, isNewest } = readEntries(namespace, entries)
    const kind = { model, dimensions }
    const written = await this.database.transaction(async (transaction) => {
      const generation = await this.generations.lockedOrNew(transaction, namespace, 'active', kind)
      checkKind(generation, kind)
      await this.generations.adopt(transaction, generation, model)
      return this.tables.put(transaction, generation, newest)
    })
    return entries.map(({ id }, index) => isNewest(index) && written.has(id))
  }

  async get(namespace: string, ids: readonly string[]): Promise<readonly (StoredVector | null)[]> {
    checkNamespace(namespace)
    if (ids.length === 0) return []
    const found = await this.generations.reading(namespace, ({ generation }) =>
      this.database.read(
        `SELECT id, seq, version_id, metadata, ${this.tables.vectorColumn} FROM ${tableOf(generation)}
         WHERE id IN ${this.database.dialect.texts('$1')}`,
        [textList(ids)],
      ),
    )
    const stored = new Map(
      (found ?? []).map((row) => [
        textOf(row, 'id'),
        {
          id: textOf(row, 'id'),
          vector: this.tables.vectorOf(row),
          metadata: jsonOf(row, 'metadata') as Metadata,
          seq: numberOf(row, 'seq'),
          versionId: maybe(textOf, row, 'version_id'),
        },
      ]),
    )
    return ids.map((id) => stored.get(id) ?? null)
  }

  async search(namespace: string, vector: Vector, options: SearchOptions = {}): Promise<readonly Neighbour[]> {
    checkNamespace(namespace)
    const query = readQuery(vector, options)
    const found = await this.generations.reading(namespace, (generation) => {
      checkKind(generation, { model: options.model ?? null, dimensions: query.vector.length })
      return this.tables.search(generation, query)
    })
    return found ?? []
  }

  async remove(namespace: string, ids: readonly string[]): Promise<number> {
    checkNamespace(namespace)
    if (ids.length === 0) return 0
    return this.database.transaction(async (transaction) => {
      const generation = await this.generations.locked(transaction, namespace, 'active')
      if (generation === null) return 0
      // A move to another model leaves out what it has copied and no longer finds here.
      const gone = await transaction.rows(
        `DELETE FROM ${tableOf(generation.generation)} WHERE id IN ${transaction.dialect.texts('$1')} RETURNING id`,
        [textList(ids)],
      )
      if (gone.length > 0) await this.tables.removed(transaction, generation)
      // What a move is building, and what one has replaced, may have them too.
      for (const other of await this.generations.besides(transaction, generation)) {
        const sql = `DELETE FROM ${tableOf(other)} WHERE id IN ${transaction.dialect.texts('$1')}`
        await transaction.rows(sql, [textList(ids)])
      }
      return gone.length
    })
  }

  /** SQLite writes its file anew, while writers wait. Postgres keeps removed rows in its files until `VACUUM FULL`. */
  eraseRemoved(): Promise<boolean> {
    return rewriteDatabase(this.database)
  }

  async modelOf(namespace: string): Promise<string | null> {
    checkNamespace(namespace)
    return (await this.generations.active(namespace))?.model ?? null
  }

  /** What it holds and how it is searched. Null if nothing was ever stored in it. */
  async namespace(namespace: string): Promise<NamespaceInfo | null> {
    checkNamespace(namespace)
    return this.generations.reading(namespace, (generation) => this.#describe(generation))
  }

  async namespaces(): Promise<readonly NamespaceInfo[]> {
    const active = (await this.generations.all()).filter(({ state }) => state === 'active')
    const infos = await Promise.all(active.map(({ namespace }) => this.namespace(namespace)))
    return infos.filter((info) => info !== null)
  }

  async #describe(generation: Generation): Promise<NamespaceInfo> {
    const { namespace, model, dimensions } = generation
    const [row] = await this.database.read(`SELECT count(*) AS count FROM ${tableOf(generation.generation)}`)
    const count = numberOf(row ?? {}, 'count')
    const building = (await this.generations.all()).find(
      (one) => one.namespace === namespace && one.state === 'building',
    )
    return {
      ...{ namespace, model, dimensions, count },
      search: await this.tables.searchMethod(generation, count),
      movingTo: building === undefined ? null : (building.model ?? 'an unnamed model'),
    }
  }

  /** Removes what a move to another model has replaced. */
  async dropRetired(): Promise<void> {
    const retired = (await this.generations.all()).filter(({ state }) => state === 'retired')
    for (const { generation } of retired) {
      await this.database.transaction((transaction) => this.generations.drop(transaction, generation))
    }
  }

  /** Gives back the space of removed vectors and rebuilds indexes that hold too many of them; says what was done. */
  async optimize(call: OptimizeCall): Promise<readonly string[]> {
    await this.dropRetired()
    const generations = await this.generations.all()
    return this.tables.optimize(
      generations.filter(({ state }) => state === 'active'),
      call,
    )
  }

  async close(): Promise<void> {
    try {
      await this.tables.close()
    } finally {
      await this.database.close()
    }
  }
}

function readQuery(vector: Vector, options: SearchOptions): Query {
  // A filter that was misspelt would otherwise find the entries of everybody.
  refuseUnknown(options, SEARCH_OPTIONS, 'search')
  const { limit = LIMIT_DEFAULT, filter = {}, scoreMin = Number.NEGATIVE_INFINITY } = options
  checkListLimit(limit, LIMIT_MAX)
  if (typeof scoreMin !== 'number' || Number.isNaN(scoreMin)) {
    throw new OptionError(`'scoreMin' is ${scoreMin}; give a number from -1 to 1`)
  }
  if (typeof filter !== 'object' || filter === null || Array.isArray(filter)) {
    throw new OptionError(`'filter' is not an object; give fields and their values, such as { lang: 'en' }`)
  }
  for (const [name, value] of Object.entries(filter)) {
    if (/["\\]/.test(name) || !isStorable(name)) {
      throw new OptionError(`the filter's field ${JSON.stringify(name)} has a quote or no whole characters; rename it`)
    }
    const isValue = typeof value === 'string' ? isStorable(value) : typeof value === 'boolean' || Number.isFinite(value)
    if (!isValue) throw new OptionError(`the filter's field '${name}' is not whole text, a number or a boolean`)
  }
  return { vector: readVector(vector, 'the vector to search for'), limit, filter: Object.entries(filter), scoreMin }
}
