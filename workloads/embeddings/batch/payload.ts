import { z } from 'zod'
import { isStorable, storableJson } from '../../database/text.ts'

/** More of them make a result that could be too large to be stored. */
export const ITEMS_MAX = 1_000

const WHOLE = 'must not have NUL or a half of a surrogate pair'

/** Refused when the job is enqueued: the store would refuse it after the texts were paid for. */
const name = z.string().min(1).max(200).refine(isStorable, WHOLE)

const metadataSchema = z
  .record(z.string(), z.json())
  .refine((metadata) => storableJson(metadata) === JSON.stringify(metadata), WHOLE)

const itemSchema = z.strictObject({
  text: z.string(),
  sourceId: name,
  /** The id of the vector; default: made of the namespace and the source's id, the same in every run. */
  embeddingId: name.optional(),
  metadata: metadataSchema.optional(),
  /** What the text is a version of, as the caller counts: a vector of a later one is not replaced. */
  seq: z.int().min(0).optional(),
  /** As the caller names it; default: a hash of the text. */
  versionId: name.optional(),
})

export const embeddingBatchSchema = z.strictObject({
  items: z.array(itemSchema).max(ITEMS_MAX),
  namespace: name,
  /** With both, the rows of the sources get the id of their vector. */
  updateTable: z.string().optional(),
  updateColumn: z.string().optional(),
})

export type EmbeddingItem = z.infer<typeof itemSchema>
export type EmbeddingBatchData = z.infer<typeof embeddingBatchSchema>

export interface EmbeddingResult {
  readonly sourceId: string
  /** Null where it failed. */
  readonly embeddingId: string | null
  readonly success: boolean
  readonly error?: string
  /** True where the stored vector is at least as new, and stayed. */
  readonly superseded?: true
}

export interface EmbeddingBatchResult {
  readonly total: number
  readonly succeeded: number
  readonly failed: number
  /** In the order of the items. */
  readonly results: readonly EmbeddingResult[]
}

/** Some items have no vector, or their rows no id, after all batches have run. The next attempt does only what is missing. */
export class EmbeddingsIncomplete extends Error {
  readonly code = 'ERR_EMBEDDINGS_INCOMPLETE'
  override readonly name = 'EmbeddingsIncomplete'
  readonly failedIds: readonly string[]
  readonly result: EmbeddingBatchResult

  constructor(result: EmbeddingBatchResult, options?: ErrorOptions) {
    const failed = result.results.filter(({ success }) => !success)
    const shown = failed.slice(0, IDS_SHOWN_MAX).map(({ sourceId }) => sourceId)
    const more = failed.length > shown.length ? ` and ${failed.length - shown.length} more` : ''
    super(
      `${failed.length} of ${result.total} items are not finished (${shown.join(', ')}${more}): ${failed[0]?.error ?? ''}`,
      options,
    )
    this.failedIds = failed.map(({ sourceId }) => sourceId)
    this.result = result
  }
}

const IDS_SHOWN_MAX = 10
