/** Which vector each item of a job becomes, and which items have nothing left to do. */
import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { stableUuid } from '../uuid.ts'
import type { StoredVector } from '../vector-store.ts'
import type { EmbeddingItem } from './payload.ts'

/** An item with the ids that every run of the job gives it. */
export interface Planned {
  readonly index: number
  readonly item: EmbeddingItem
  readonly embeddingId: string
  readonly versionId: string
}

export function plan(namespace: string, item: EmbeddingItem, index: number): Planned {
  return {
    index,
    item,
    embeddingId: item.embeddingId ?? stableUuid(namespace, item.sourceId),
    versionId: item.versionId ?? `sha256:${createHash('sha256').update(item.text).digest('hex')}`,
  }
}

/**
 * By the id of the vector: the item with the highest `seq`, and of equal ones the last. If the others were written too, each run
 * of the job would leave another one of them.
 */
export function newestOf(planned: readonly Planned[]): ReadonlyMap<string, Planned> {
  const newest = new Map<string, Planned>()
  for (const one of planned) {
    const known = newest.get(one.embeddingId)
    if (known === undefined || (one.item.seq ?? 0) >= (known.item.seq ?? 0)) newest.set(one.embeddingId, one)
  }
  return newest
}

/** With a `seq` that alone decides; otherwise the version or the text, and the metadata, must be what is stored. */
export function isUpToDate({ item, versionId }: Planned, stored: StoredVector | null): boolean {
  if (stored === null) return false
  const seq = item.seq ?? 0
  if (seq > 0 || stored.seq > 0) return stored.seq >= seq
  return stored.versionId === versionId && isDeepStrictEqual(stored.metadata, item.metadata ?? {})
}
