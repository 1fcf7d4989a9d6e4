import { z } from 'zod'
import { toErrorRecord } from '../../src/job/error-record.ts'
import { type OptionNames, refuseUnknown } from '../../src/job/known-options.ts'
import { BaseWorker, type WorkerOutlets } from '../framework/base-worker.ts'
import { JOB_TYPES } from '../framework/job-types.ts'
import type { WorkerJob } from '../framework/worker-job.ts'

/** Something with an index that grows worse as rows are replaced and removed, such as a vector store or a full text. */
export interface Optimizable {
  readonly name: string
  /** Says what was done. Must be safe to repeat and to stop when `signal` aborts. */
  optimize(call: { readonly threshold: number; readonly signal: AbortSignal }): Promise<readonly string[]>
}

export interface IndexOptimizationOptions extends WorkerOutlets {
  readonly indexes: readonly Optimizable[]
}

const OPTIONS: OptionNames<IndexOptimizationOptions> = {
  indexes: true,
  log: true,
  metrics: true,
  alerter: true,
  clock: true,
}

const THRESHOLD_DEFAULT = 0.8
/** Rebuilding the index of a large table takes longer than the five minutes that the type has by default. */
const TIMEOUT_MS = 3_600_000

const indexOptimizationSchema = z.strictObject({
  /** Of 1: an index with at least this share of live rows is left alone. */
  threshold: z.number().min(0).max(1).default(THRESHOLD_DEFAULT),
})

export type IndexOptimizationData = z.infer<typeof indexOptimizationSchema>
export type IndexOptimizationInput = z.input<typeof indexOptimizationSchema>

export interface IndexOptimizationResult {
  readonly threshold: number
  readonly reports: readonly { readonly name: string; readonly done: readonly string[] }[]
}

/**
 * Tidies up indexes, one after the other, as its schedule in `housekeepingSchedules` asks at 3:00 UTC. One that fails leaves the
 * others alone, and the job is retried.
 *
 * @example
 * const worker = new IndexOptimizationWorker({ indexes: [vectors] })
 * await mill.work([worker.definition])
 * await mill.keep({ schedules: housekeepingSchedules })
 */
export class IndexOptimizationWorker extends BaseWorker<
  IndexOptimizationData,
  IndexOptimizationResult,
  IndexOptimizationInput
> {
  readonly #indexes: readonly Optimizable[]

  constructor(options: IndexOptimizationOptions) {
    refuseUnknown(options, OPTIONS, 'IndexOptimizationWorker')
    const { indexes, ...outlets } = options
    const config = { concurrency: 1, payload: indexOptimizationSchema, options: { timeout: TIMEOUT_MS } }
    super(JOB_TYPES.INDEX_OPTIMIZATION, config, outlets)
    this.#indexes = indexes
  }

  async process(
    { threshold }: IndexOptimizationData,
    job: WorkerJob<IndexOptimizationData>,
  ): Promise<IndexOptimizationResult> {
    const reports: { readonly name: string; readonly done: readonly string[] }[] = []
    const failures: unknown[] = []
    for (const [place, index] of this.#indexes.entries()) {
      const { name } = index
      job.signal.throwIfAborted()
      await job.updateProgress({ phase: 'optimizing', index: name, percent: (place / this.#indexes.length) * 100 })
      try {
        const done = await index.optimize({ threshold, signal: job.signal })
        reports.push({ name, done })
        this.logger.info('Index optimized', { index: name, done: done.length })
      } catch (error) {
        failures.push(error)
        this.logger.warn('Index could not be optimized', { index: name, error: toErrorRecord(error).message })
      }
    }
    if (failures.length > 0) throw failures[0]
    await job.updateProgress({ phase: 'complete', percent: 100 })
    return { threshold, reports }
  }
}
