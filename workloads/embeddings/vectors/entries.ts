/** Entries as they are stored, and what is refused about them. */
import { OptionError } from '../../../src/errors.ts'
import { isStorable, storableJson } from '../../database/text.ts'
import type { Vector } from '../options.ts'
import { type Metadata, type VectorEntry, VectorsRefused } from '../vector-store.ts'
import { dot } from './matrix.ts'

export interface NewVector {
  readonly id: string
  readonly vector: Float32Array
  /** JSON text. */
  readonly metadata: string
  readonly seq: number
  readonly versionId: string | null
}

export interface NewVectors {
  readonly dimensions: number
  /** One for each id: the newest of the call. Sorted by id, so that concurrent calls lock rows in the same order. */
  readonly newest: readonly NewVector[]
  /** Whether the entry at this place is the newest of its id. */
  isNewest(index: number): boolean
}

/** pgvector's limit. */
const DIMENSIONS_MAX = 16_000
/** pgvector and sqlite-vec sum squares up as 32-bit numbers: beyond these lengths their scores would be 0 or not a number. */
const LENGTH_MIN = 1e-15
const LENGTH_MAX = 1e15
const ID_LENGTH_MAX = 500
const NAMESPACE_LENGTH_MAX = 200
const WHOLE = 'without NUL and halves of surrogate pairs'

export function checkNamespace(namespace: string): void {
  const isName = typeof namespace === 'string' && namespace !== '' && namespace.length <= NAMESPACE_LENGTH_MAX
  if (isName && isStorable(namespace)) return
  throw new OptionError(`a namespace is text of 1 to ${NAMESPACE_LENGTH_MAX} characters, ${WHOLE}`)
}

export function readEntries(namespace: string, entries: readonly VectorEntry[]): NewVectors {
  const vectors = entries.map(readEntry)
  const dimensions = vectors[0]?.vector.length ?? 0
  const other = vectors.find(({ vector }) => vector.length !== dimensions)
  if (other !== undefined) {
    throw new VectorsRefused(
      `the vectors for '${namespace}' have ${dimensions} and ${other.vector.length} dimensions; give vectors of one model`,
    )
  }
  const newest = new Map<string, { readonly index: number; readonly entry: NewVector }>()
  for (const [index, entry] of vectors.entries()) {
    const known = newest.get(entry.id)
    if (known === undefined || entry.seq >= known.entry.seq) newest.set(entry.id, { index, entry })
  }
  const places = new Set([...newest.values()].map(({ index }) => index))
  return {
    dimensions,
    newest: [...newest.values()].map(({ entry }) => entry).sort((one, other) => (one.id < other.id ? -1 : 1)),
    isNewest: (index) => places.has(index),
  }
}

function readEntry({ id, vector, metadata = {}, seq = 0, versionId }: VectorEntry): NewVector {
  if (typeof id !== 'string' || id === '' || id.length > ID_LENGTH_MAX || !isStorable(id)) {
    throw new OptionError(`the id of a vector is text of 1 to ${ID_LENGTH_MAX} characters, ${WHOLE}`)
  }
  if (versionId !== undefined && !isStorable(versionId)) {
    throw new OptionError(`'versionId' of the vector '${id}' is not text ${WHOLE}`)
  }
  if (!Number.isSafeInteger(seq) || seq < 0) {
    throw new OptionError(`'seq' of the vector '${id}' is ${seq}; give a whole number from 0`)
  }
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata)) {
    throw new OptionError(`'metadata' of the vector '${id}' is not an object; give one, or leave it out`)
  }
  return {
    id,
    vector: readVector(vector, `the vector '${id}'`),
    metadata: metadataText(id, metadata),
    seq,
    versionId: versionId ?? null,
  }
}

/** What both databases return as it was given: a text that changed on the way would never again equal its source. */
function metadataText(id: string, metadata: Metadata): string {
  const text = JSON.stringify(metadata)
  if (text.startsWith('{') && storableJson(metadata) === text) return text
  throw new OptionError(`'metadata' of the vector '${id}' is not an object whose texts are ${WHOLE}; correct them`)
}

/** As 32-bit numbers. `what` names it in the message. */
export function readVector(vector: Vector, what: string): Float32Array {
  const isVector = Array.isArray(vector) || vector instanceof Float32Array || vector instanceof Float64Array
  if (!isVector || vector.length === 0 || vector.length > DIMENSIONS_MAX) {
    throw new VectorsRefused(`${what} is not a list of 1 to ${DIMENSIONS_MAX} numbers; check the embedder`)
  }
  const numbers = Float32Array.from(vector)
  let sum = 0
  for (const [index, number] of numbers.entries()) {
    if (typeof vector[index] !== 'number' || !Number.isFinite(number)) {
      throw new VectorsRefused(`${what} holds ${vector[index]} at ${index}; check the embedder`)
    }
    sum += number * number
  }
  // It has no direction, so nothing is near to it or far from it.
  if (sum === 0) throw new VectorsRefused(`${what} holds nothing but zeros; check the embedder and the text`)
  const length = Math.sqrt(sum)
  if (length < LENGTH_MIN || length > LENGTH_MAX) {
    throw new VectorsRefused(
      `${what} has the length ${length.toExponential(1)} and may have ${LENGTH_MIN} to ${LENGTH_MAX}; check the embedder`,
    )
  }
  return numbers
}

/** The same direction with the length 1: the cosine of two of these is their dot product. */
export function normalised(vector: Float32Array): Float32Array {
  const length = Math.sqrt(dot(vector, vector, 0))
  const unit = new Float32Array(vector.length)
  // Every row of a search passes here, and a callback for each number would take several times as long.
  for (let index = 0; index < vector.length; index += 1) unit[index] = (vector[index] as number) / length
  return unit
}
