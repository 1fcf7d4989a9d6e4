/** What differs between the two databases: how vectors are kept, searched and tidied up. */
import type { Row, WorkloadTransaction } from '../../database/database.ts'
import type { Neighbour } from '../vector-store.ts'
import type { NewVector } from './entries.ts'

/** One of a namespace's sets of vectors. */
export interface Generation {
  readonly generation: number
  readonly namespace: string
  readonly state: 'active' | 'building' | 'retired'
  readonly model: string | null
  readonly dimensions: number
}

export interface Query {
  readonly vector: Float32Array
  readonly limit: number
  readonly filter: readonly (readonly [name: string, value: string | number | boolean])[]
  readonly scoreMin: number
}

export interface OptimizeCall {
  /** Of 1: the least share of live rows that is left alone. */
  readonly threshold: number
  readonly signal?: AbortSignal
}

export interface VectorTables {
  /** How a namespace of this size is searched, such as 'hnsw'. */
  searchMethod(generation: Generation, count: number): Promise<string>
  create(transaction: WorkloadTransaction, generation: Generation): Promise<void>
  drop(transaction: WorkloadTransaction, generation: number): Promise<void>
  /** Appended to a SELECT of a generation: it is not replaced before this transaction ends. */
  readonly forShare: string
  /** Returns the ids that were written. `sourceChanges` is given for a generation that is being built. */
  put(
    transaction: WorkloadTransaction,
    generation: Generation,
    vectors: readonly NewVector[],
    sourceChanges?: SourceChanges,
  ): Promise<ReadonlySet<string>>
  /** Called after rows were deleted, in the same transaction. */
  removed(transaction: WorkloadTransaction, generation: Generation): Promise<void>
  vectorOf(row: Row): Float32Array
  /** The column, as `vectorOf` reads it. */
  readonly vectorColumn: string
  search(generation: Generation, query: Query): Promise<readonly Neighbour[]>
  /** Says what was done, for each generation. */
  optimize(generations: readonly Generation[], call: OptimizeCall): Promise<readonly string[]>
  close(): Promise<void>
}

/** The table of a generation, as statements name it. */
export function tableOf(generation: number): string {
  return `{embedding_vectors_${generation}}`
}

/** Versions of the source rows, by id, for a generation that is being built. */
export type SourceChanges = ReadonlyMap<string, number>

/**
 * A write changes a row only if it is newer. Without versions the last write wins. While a generation is built, the state of the
 * source row decides instead.
 */
export function replacingOlder(stored: string, sourceChanges: SourceChanges | undefined): string {
  const isNewer =
    sourceChanges === undefined
      ? `excluded.seq > ${stored}.seq OR (excluded.seq = 0 AND ${stored}.seq = 0)`
      : `excluded.source_change <> ${stored}.source_change`
  return `ON CONFLICT (id) DO UPDATE SET seq = excluded.seq, version_id = excluded.version_id, metadata = excluded.metadata,
    change = excluded.change, source_change = excluded.source_change, embedding = excluded.embedding WHERE ${isNewer}`
}
