import { z } from 'zod'
import { NonRetryable, Postpone } from '../../../src/errors.ts'
import { type OptionNames, refuseUnknown } from '../../../src/job/known-options.ts'
import { type Clock, systemClock } from '../../../src/time/clock.ts'
import { BaseWorker, type WorkerOutlets } from '../../framework/base-worker.ts'
import { JOB_TYPES } from '../../framework/job-types.ts'
import type { WorkerJob } from '../../framework/worker-job.ts'
import { BATCH_SIZE } from '../batch/worker.ts'
import { type Embedder, embedAll } from '../embedder.ts'
import { halfwayAtLimit } from '../patience.ts'
import type { Metadata } from '../vector-store.ts'
import { type MovingEntry, NamespaceMove, underWay } from '../vectors/move.ts'
import type { SqlVectorStore } from '../vectors/store.ts'

/** A vector whose text is needed again. */
export interface ReindexedEntry {
  readonly id: string
  readonly metadata: Metadata
  readonly seq: number
  readonly versionId: string | null
}

export interface EmbeddingReindexOptions extends WorkerOutlets {
  readonly store: SqlVectorStore
  /** Of the model that namespaces are moved to. */
  readonly embedder: Embedder
  /** The texts that these vectors were made from, in order; null for one that no longer exists. */
  texts(
    entries: readonly ReindexedEntry[],
    call: { readonly namespace: string; readonly signal: AbortSignal },
  ): Promise<readonly (string | null)[]>
}

const OPTIONS: OptionNames<EmbeddingReindexOptions> = {
  ...{ store: true, embedder: true, texts: true, log: true, metrics: true, alerter: true, clock: true },
}

export const embeddingReindexSchema = z.strictObject({
  namespace: z.string().min(1).max(200),
  /** Leave out vectors whose text no longer exists. Without it such a vector stops the move before the switch. */
  dropMissing: z.boolean().optional(),
  /** Throw away what an unfinished move to another model has built. */
  restart: z.boolean().optional(),
})

export type EmbeddingReindexData = z.infer<typeof embeddingReindexSchema>

export interface EmbeddingReindexResult {
  readonly namespace: string
  readonly model: string
  /** Vectors of the new model that the namespace holds. */
  readonly moved: number
  /** Left out because their text no longer exists. */
  readonly missing: number
}

/** A run gives the job back before the type's timeout of five minutes, and goes on from there. It uses no attempt. */
const RUN_MS_MAX = 200_000
const MISSING_SHOWN_MAX = 10

/**
 * Moves a namespace to the model of its embedder without downtime: the vectors of the new model are built beside the old ones,
 * which are read and written meanwhile, and one transaction switches. It can be killed at any point and goes on.
 *
 * @example
 * const worker = new EmbeddingReindexWorker({ store: vectors, embedder: better, texts: (entries) => documents.texts(entries) })
 * await mill.enqueue(worker.definition, { namespace: 'documents' })
 */
export class EmbeddingReindexWorker extends BaseWorker<EmbeddingReindexData, EmbeddingReindexResult> {
  readonly #options: EmbeddingReindexOptions
  readonly #clock: Clock

  constructor(options: EmbeddingReindexOptions) {
    refuseUnknown(options, OPTIONS, 'EmbeddingReindexWorker')
    const { store: _store, embedder: _embedder, texts: _texts, ...outlets } = options
    super(JOB_TYPES.EMBEDDING_REINDEX, { concurrency: 1, payload: embeddingReindexSchema }, outlets)
    this.#options = options
    this.#clock = options.clock ?? systemClock
  }

  async process(data: EmbeddingReindexData, job: WorkerJob<EmbeddingReindexData>): Promise<EmbeddingReindexResult> {
    const { namespace } = data
    const { store, embedder } = this.#options
    const move = new NamespaceMove(store, namespace, embedder.model)
    await store.dropRetired()
    const state = await move.state()
    if (state === null) {
      throw new NonRetryable(`there is no namespace '${namespace}'; check the name, nothing was moved`)
    }
    if (state.active.model === embedder.model) {
      return { namespace, model: embedder.model, moved: await move.count(state.active), missing: 0 }
    }
    if (state.building !== null && state.building.model !== embedder.model) {
      if (data.restart !== true) throw underWay(namespace, state.building.model)
      await move.abandon()
    }
    const missing = await halfwayAtLimit((stored) => this.#copy(move, data, job, stored))
    await store.dropRetired()
    const moved = await move.state()
    await job.updateProgress({ phase: 'complete', percent: 100 })
    const count = moved === null ? 0 : await move.count(moved.active)
    return { namespace, model: embedder.model, moved: count, missing: missing.size }
  }

  async #copy(
    move: NamespaceMove,
    { namespace, dropMissing = false }: EmbeddingReindexData,
    job: WorkerJob,
    stored: () => void,
  ): Promise<ReadonlySet<string>> {
    const untilMs = this.#clock.monotonicMs() + RUN_MS_MAX
    const missing = new Set<string>()
    const state = await move.state()
    const total = state === null ? 0 : await move.count(state.active)
    let done = state?.building == null ? 0 : await move.count(state.building)
    do {
      for (let cursor = 0; ; ) {
        job.signal.throwIfAborted()
        const page = await move.next(cursor, BATCH_SIZE, missing)
        const last = page.at(-1)
        if (last === undefined) break
        const without = await this.#copyPage(move, namespace, page, job.signal)
        for (const id of without) missing.add(id)
        if (without.length < page.length) stored()
        cursor = last.change
        done += page.length
        const percent = Math.min(1, done / total) * 80
        await job.updateProgress({ phase: 'embedding', done, total, percent })
        if (this.#clock.monotonicMs() > untilMs) throw new Postpone('1s', `moving '${namespace}' goes on`)
      }
      if (missing.size > 0 && !dropMissing) throw withoutTexts(namespace, missing)
    } while (!(await move.finish(missing)))
    return missing
  }

  /** Returns the ids whose text no longer exists. */
  async #copyPage(
    move: NamespaceMove,
    namespace: string,
    page: readonly MovingEntry[],
    signal: AbortSignal,
  ): Promise<readonly string[]> {
    const { embedder, texts } = this.#options
    const found = await texts(page, { namespace, signal })
    if (found.length !== page.length) {
      throw new Error(`'texts' returned ${found.length} texts for ${page.length} entries; return one or null for each`)
    }
    const present = page.flatMap((entry, index) => {
      const text = found[index] ?? null
      return text === null || text.trim() === '' ? [] : [{ entry, text }]
    })
    const vectors = await embedAll(
      embedder,
      present.map(({ text }) => text),
      signal,
    )
    const entries = present.flatMap(({ entry }, index) => {
      const vector = vectors[index]
      return vector === undefined ? [] : [{ ...entry, vector }]
    })
    const dimensions = vectors[0]?.length
    if (dimensions !== undefined) await move.put(dimensions, entries)
    const kept = new Set(entries.map(({ id }) => id))
    return page.flatMap(({ id }) => (kept.has(id) ? [] : [id]))
  }
}

function withoutTexts(namespace: string, missing: ReadonlySet<string>): NonRetryable {
  const shown = [...missing].slice(0, MISSING_SHOWN_MAX).join(', ')
  const more = missing.size > MISSING_SHOWN_MAX ? ` and ${missing.size - MISSING_SHOWN_MAX} more` : ''
  return new NonRetryable(
    `${missing.size} vectors of '${namespace}' have no text (${shown}${more}); nothing was switched. Remove them, or give 'dropMissing'`,
  )
}
