import { isMillraceError, NonRetryable, Offline, OptionError, RetryAfter } from '../../../src/errors.ts'
import { cut, toErrorRecord } from '../../../src/job/error-record.ts'
import { type OptionNames, refuseUnknown } from '../../../src/job/known-options.ts'
import { isFinal } from '../../../src/job/policy.ts'
import { type Clock, systemClock } from '../../../src/time/clock.ts'
import { BaseWorker, type WorkerOutlets } from '../../framework/base-worker.ts'
import { JOB_TYPES } from '../../framework/job-types.ts'
import type { Limiter } from '../../framework/options.ts'
import type { WorkerJob } from '../../framework/worker-job.ts'
import { type Embedder, type Embedders, embedAll, embedderFor } from '../embedder.ts'
import { asksForPatience, delayOf, halfwayAtLimit } from '../patience.ts'
import type { VectorStore } from '../vector-store.ts'
import {
  type EmbeddingBatchData,
  type EmbeddingBatchResult,
  type EmbeddingResult,
  EmbeddingsIncomplete,
  embeddingBatchSchema,
} from './payload.ts'
import { isUpToDate, newestOf, type Planned, plan } from './plan.ts'
import { type SourceColumn, type SourceDatabase, SourceRows, type SourceTarget } from './source-rows.ts'

export interface EmbeddingBatchOptions extends WorkerOutlets {
  /** The columns that jobs may write by `updateTable` and `updateColumn`. Default: none. */
  readonly sources?: readonly SourceColumn[]
  /** Jobs at once in one process. Default: 3. */
  readonly concurrency?: number
  /** Over all processes. Default: 5 jobs in 1000 ms. Null for none. */
  readonly limiter?: Limiter | null
  /** A longer text fails its batch. Default: 32 000 characters, about 8 000 tokens of English. */
  readonly textLengthMax?: number
}

const OPTIONS: OptionNames<EmbeddingBatchOptions> = {
  ...{ sources: true, concurrency: true, limiter: true, textLengthMax: true },
  ...{ log: true, metrics: true, alerter: true, clock: true },
}

export const BATCH_SIZE = 32
const LIMITER: Limiter = { max: 5, duration: 1_000 }
const TEXT_LENGTH_MAX = 32_000
const ITEM_ERROR_LENGTH_MAX = 200
/** How old a job may be that a rate limit stops without using an attempt. Two jobs that replace each other's vectors never end. */
const HALFWAY_MS_MAX = 86_400_000

/** A fault of the items themselves: another attempt with the same payload would meet it again. */
class ItemsRefused extends Error {}

/** What one run of a job knows. */
interface Run {
  readonly namespace: string
  readonly embedder: Embedder
  readonly target: SourceTarget | null
  readonly signal: AbortSignal
  readonly results: EmbeddingResult[]
  readonly errors: unknown[]
  /** Called for each batch that was stored. */
  readonly stored: () => void
}

/**
 * Embeds texts in batches of 32 and stores their vectors; then, where the payload asks for it, writes the vectors' ids into the
 * rows that the texts come from. A batch that fails leaves the others alone. When some items failed and another try may help,
 * the job is retried, and its next attempt embeds only what is not stored yet.
 *
 * @example
 * const worker = new EmbeddingBatchWorker(embedder, vectors, database, {
 *   sources: [{ table: 'documents', column: 'embedding_id' }],
 * })
 * await mill.work([worker.definition])
 */
export class EmbeddingBatchWorker extends BaseWorker<EmbeddingBatchData, EmbeddingBatchResult> {
  readonly #embedders: Embedders
  readonly #store: VectorStore
  readonly #sources: SourceRows
  readonly #textLengthMax: number
  readonly #time: Clock

  constructor(
    embedder: Embedders,
    vectorStore: VectorStore,
    db: SourceDatabase | null = null,
    options: EmbeddingBatchOptions = {},
  ) {
    refuseUnknown(options, OPTIONS, 'EmbeddingBatchWorker')
    const { sources = [], textLengthMax = TEXT_LENGTH_MAX, concurrency = 3, limiter = LIMITER, ...outlets } = options
    const config = { concurrency, payload: embeddingBatchSchema, ...(limiter !== null && { limiter }) }
    super(JOB_TYPES.EMBEDDING_BATCH, config, outlets)
    if (!Number.isSafeInteger(textLengthMax) || textLengthMax < 1) {
      throw new OptionError(`'textLengthMax' is ${textLengthMax}; give a whole number from 1`)
    }
    this.#embedders = embedder
    this.#store = vectorStore
    this.#sources = new SourceRows(db, sources)
    this.#textLengthMax = textLengthMax
    this.#time = options.clock ?? systemClock
  }

  process(data: EmbeddingBatchData, job: WorkerJob<EmbeddingBatchData>): Promise<EmbeddingBatchResult> {
    return halfwayAtLimit((stored) => {
      const isYoung = this.#time.nowMs() - job.createdAtMs < HALFWAY_MS_MAX
      return this.#run(data, job, isYoung ? stored : () => {})
    })
  }

  async #run(data: EmbeddingBatchData, job: WorkerJob, stored: () => void): Promise<EmbeddingBatchResult> {
    const { items, namespace } = data
    const target = this.#sources.target(data)
    if ((data.updateTable === undefined) !== (data.updateColumn === undefined)) {
      this.logger.warn(`No source rows are updated: give both 'updateTable' and 'updateColumn'`, { job_id: job.id })
    }
    const planned = items.map((item, index) => plan(namespace, item, index))
    target?.check(planned.flatMap(({ item, embeddingId }) => [item.sourceId, embeddingId]))
    const embedder = await embedderFor(this.#store, namespace, this.#embedders)
    const run: Run = { namespace, embedder, target, signal: job.signal, results: [], errors: [], stored }
    const newest = newestOf(planned)
    const pending = await this.#skipStored(run, [...newest.values()])
    await this.#embedPending(run, batchesOf(pending), job)
    await this.#settleOlder(run, planned, newest)
    const result = countedResult(run.results)
    if (run.errors.length > 0) throw await this.#incomplete(result, run.errors, job)
    await job.updateProgress({ phase: 'complete', percent: 100 })
    return result
  }

  /** What an earlier attempt or another job has stored is not embedded again; its source rows may still be missing. */
  async #skipStored(run: Run, planned: readonly Planned[]): Promise<readonly Planned[]> {
    const ids = planned.map(({ embeddingId }) => embeddingId)
    const found = await this.#store.get(run.namespace, ids)
    const stored = new Map(ids.map((id, place) => [id, found[place] ?? null]))
    const isStored = (one: Planned): boolean => isUpToDate(one, stored.get(one.embeddingId) ?? null)
    for (const batch of batchesOf(planned.filter(isStored))) {
      await this.#settle(run, batch, async () => {
        await updateSources(run, batch)
        return batch.map(({ item, embeddingId }) => (stored.get(embeddingId)?.seq ?? 0) > (item.seq ?? 0))
      })
    }
    return planned.filter((one) => !isStored(one))
  }

  /** The embedder works on a batch while the one before it is stored, so that it never waits for the store. */
  async #embedPending(run: Run, batches: readonly (readonly Planned[])[], job: WorkerJob): Promise<void> {
    let storing: Promise<void> = Promise.resolve()
    try {
      for (const [index, batch] of batches.entries()) {
        run.signal.throwIfAborted()
        const [batchNumber, totalBatches] = [index + 1, batches.length]
        const percent = (batchNumber / totalBatches) * 80
        const reported = job.updateProgress({ phase: 'embedding', batch: batchNumber, totalBatches, percent })
        const [embedded] = await Promise.all([this.#embed(run, batch), reported])
        await storing
        storing = this.#settle(run, batch, () => this.#keep(run, batch, embedded))
        if (!embedded.failed || !asksForPatience(embedded.error)) continue
        // The other batches would fail in the same way, and each would wait for its connection until the job times out.
        await storing
        for (const rest of batches.slice(index + 1)) await this.#settle(run, rest, () => Promise.reject(embedded.error))
        return
      }
    } finally {
      await storing
    }
    run.signal.throwIfAborted()
  }

  async #embed(run: Run, batch: readonly Planned[]): Promise<Embedded> {
    try {
      this.#checkTexts(batch)
      const texts = batch.map(({ item }) => item.text)
      return { failed: false, vectors: await embedAll(run.embedder, texts, run.signal) }
    } catch (error) {
      return { failed: true, error }
    }
  }

  #checkTexts(batch: readonly Planned[]): void {
    const refuse = (why: string, wrong: readonly Planned[]): void => {
      if (wrong.length === 0) return
      const ids = wrong.map(({ item }) => item.sourceId).join(', ')
      throw new ItemsRefused(`${why}: ${ids}; correct the items and enqueue their batch again`)
    }
    refuse(
      'items have no text',
      batch.filter(({ item }) => item.text.trim() === ''),
    )
    refuse(
      `texts are longer than ${this.#textLengthMax} characters`,
      batch.filter(({ item }) => item.text.length > this.#textLengthMax),
    )
  }

  /** Returns which of the items the store has in a later version. */
  async #keep(run: Run, batch: readonly Planned[], embedded: Embedded): Promise<readonly boolean[]> {
    if (embedded.failed) throw embedded.error
    run.signal.throwIfAborted()
    const entries = batch.map(({ item, embeddingId, versionId }, index) => ({
      id: embeddingId,
      vector: embedded.vectors[index] ?? [],
      versionId,
      ...(item.metadata !== undefined && { metadata: item.metadata }),
      ...(item.seq !== undefined && { seq: item.seq }),
    }))
    const written = await this.#store.upsert(run.namespace, entries, { model: run.embedder.model })
    await updateSources(run, batch)
    run.stored()
    return written.map((isWritten) => !isWritten)
  }

  /** Items that a newer one of the same job replaces end as that one did. */
  async #settleOlder(run: Run, planned: readonly Planned[], newest: ReadonlyMap<string, Planned>): Promise<void> {
    const succeeded: Planned[] = []
    for (const one of planned) {
      const newer = newest.get(one.embeddingId)
      const ended = newer === undefined || newer === one ? undefined : run.results[newer.index]
      if (ended?.success === true) succeeded.push(one)
      else if (ended !== undefined) run.results[one.index] = { ...ended, sourceId: one.item.sourceId }
    }
    for (const batch of batchesOf(succeeded)) {
      await this.#settle(run, batch, async () => {
        await updateSources(run, batch)
        return batch.map(() => true)
      })
    }
  }

  /** Records how a batch ended. Never throws. */
  async #settle(run: Run, batch: readonly Planned[], act: () => Promise<readonly boolean[]>): Promise<void> {
    try {
      const superseded = await act()
      for (const [place, { index, item, embeddingId }] of batch.entries()) {
        const newer = superseded[place] === true && { superseded: true as const }
        run.results[index] = { sourceId: item.sourceId, embeddingId, success: true, ...newer }
      }
    } catch (error) {
      const { message } = toErrorRecord(error)
      this.logger.warn('Batch failed', { namespace: run.namespace, items: batch.length, error: message })
      if (!(error instanceof ItemsRefused)) run.errors.push(error)
      for (const { index, item } of batch) {
        const failed = { sourceId: item.sourceId, embeddingId: null, success: false }
        run.results[index] = { ...failed, error: cut(message, ITEM_ERROR_LENGTH_MAX) }
      }
    }
  }

  /** What the job fails with, so that the queue does what the errors of its batches ask for. */
  async #incomplete(result: EmbeddingBatchResult, errors: readonly unknown[], job: WorkerJob): Promise<Error> {
    const { total, succeeded, failed } = result
    await job.updateProgress({ phase: 'incomplete', percent: 80, total, succeeded, failed })
    const [first] = errors
    const incomplete = new EmbeddingsIncomplete(result, { cause: first })
    const patient = errors.find(asksForPatience)
    const asked = { delay: delayOf(patient), cause: incomplete }
    if (isMillraceError(patient, 'ERR_OFFLINE')) return new Offline(incomplete.message, asked)
    if (isMillraceError(patient, 'ERR_RETRY_AFTER')) return new RetryAfter(asked.delay, incomplete.message, asked)
    return errors.every(isFinal) ? new NonRetryable(incomplete.message, { cause: incomplete }) : incomplete
  }
}

type Embedded =
  | { readonly failed: false; readonly vectors: readonly Float32Array[] }
  | { readonly failed: true; readonly error: unknown }

function updateSources({ target }: Run, batch: readonly Planned[]): Promise<void> | undefined {
  return target?.update(batch.map(({ item, embeddingId }) => ({ id: item.sourceId, embeddingId })))
}

function batchesOf<Item>(items: readonly Item[]): readonly (readonly Item[])[] {
  const count = Math.ceil(items.length / BATCH_SIZE)
  return Array.from({ length: count }, (_, index) => items.slice(index * BATCH_SIZE, (index + 1) * BATCH_SIZE))
}

function countedResult(results: readonly EmbeddingResult[]): EmbeddingBatchResult {
  const succeeded = results.filter(({ success }) => success).length
  return { total: results.length, succeeded, failed: results.length - succeeded, results }
}
