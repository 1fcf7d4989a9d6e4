import type { MemoryStore } from '../../src/engines/memory/index.ts'
import { type EmbeddingJob, readVersion } from './entry.ts'
import { EMBED_TYPE } from './generate.ts'

type Row = ReturnType<MemoryStore['dead']>[number]

const BY_QUEUE = { who: 'embedding-queue', reason: 'no longer wanted' }

/** The queue's dead letters: the newest failed version of each entry, at most `max` of them. */
export class DeadLetterQueue {
  readonly #store: MemoryStore
  readonly #max: number
  #dropped = 0

  constructor(store: MemoryStore, max: number) {
    this.#store = store
    this.#max = max
  }

  /** How many were dropped because of `max`. */
  get dropped(): number {
    return this.#dropped
  }

  /** Oldest first. */
  list(): readonly EmbeddingJob[] {
    return this.#rows().map(toEmbeddingJob)
  }

  find(key: string): EmbeddingJob | null {
    const row = this.#rows().find(({ job }) => job.latest?.key === key)
    return row === undefined ? null : toEmbeddingJob(row)
  }

  /** Replaces an older version of the entry, and drops the oldest letter if there are too many. */
  admit(dead: EmbeddingJob, key: string, nowMs: number): void {
    this.discard(key, nowMs, dead.seq - 1)
    const tooMany = this.#rows().slice(0, Math.max(0, this.#rows().length - this.#max))
    for (const { job } of tooMany) if (this.#store.discard(job.id, BY_QUEUE, nowMs)) this.#dropped += 1
  }

  /** Drops the entry's dead letter if its version is not above `seqMax`. False if there is no such letter. */
  discard(key: string, nowMs: number, seqMax: number = Number.POSITIVE_INFINITY): boolean {
    let discarded = false
    for (const { job, seq } of this.#rows()) {
      if (job.latest?.key !== key || (seq ?? 0) > seqMax) continue
      discarded = this.#store.discard(job.id, BY_QUEUE, nowMs) || discarded
    }
    return discarded
  }

  #rows(): readonly Row[] {
    return [...this.#store.dead({ type: EMBED_TYPE, limit: Number.POSITIVE_INFINITY })].reverse()
  }
}

export function toEmbeddingJob(row: Row): EmbeddingJob {
  const job = { ...readVersion(row.job.payload), attempts: row.attempt }
  return row.error === null ? job : { ...job, lastError: row.error.message }
}
