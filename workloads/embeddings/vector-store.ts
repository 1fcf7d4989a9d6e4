import type { Vector } from './options.ts'

export type Metadata = Readonly<Record<string, unknown>>

export interface VectorEntry {
  readonly id: string
  readonly vector: Vector
  readonly metadata?: Metadata
  /** The version of what it was made from. A write that is not newer than what is stored changes nothing; default: 0, which replaces only 0. */
  readonly seq?: number
  /** What the model was given, as the caller names its versions; default: none. */
  readonly versionId?: string
}

export interface StoredVector {
  readonly id: string
  readonly vector: Float32Array
  readonly metadata: Metadata
  readonly seq: number
  readonly versionId: string | null
}

export interface Neighbour {
  readonly id: string
  /** The cosine similarity, -1 to 1. */
  readonly score: number
  readonly metadata: Metadata
}

export interface OfModel {
  /**
   * The model that made the vectors. A namespace holds the vectors of one model; those of another are refused. Default: not
   * checked.
   */
  readonly model?: string
}

export interface SearchOptions extends OfModel {
  /** Default: 10, at most 1000. */
  readonly limit?: number
  /** Fields of the metadata that must have these values. */
  readonly filter?: Readonly<Record<string, string | number | boolean>>
  /** Neighbours that are less similar are left out. */
  readonly scoreMin?: number
}

/** Vectors by namespace and id. All vectors of a namespace have the same number of dimensions. */
export interface VectorStore {
  /** True for each entry that was stored, false for one that is older than what is there. All or nothing otherwise. */
  upsert(namespace: string, entries: readonly VectorEntry[], options?: OfModel): Promise<readonly boolean[]>
  /** In the order of the ids; null for those that are not there. */
  get(namespace: string, ids: readonly string[]): Promise<readonly (StoredVector | null)[]>
  /** The most similar first. */
  search(namespace: string, vector: Vector, options?: SearchOptions): Promise<readonly Neighbour[]>
  /** Returns how many were there. */
  remove(namespace: string, ids: readonly string[]): Promise<number>
  /** Makes sure that no byte of removed vectors is left in files of the store. False if it could not; call it again then. */
  eraseRemoved?(): Promise<boolean>
  /** The model whose vectors a namespace holds. Null where it is not known. */
  modelOf?(namespace: string): Promise<string | null>
}

/**
 * Vectors that do not fit: another number of dimensions or another model than their namespace has, a number that is not
 * finite, nothing but zeros. Nothing of the call was stored.
 */
export class VectorsRefused extends Error {
  readonly code = 'ERR_VECTORS'
  override readonly name = 'VectorsRefused'
}
