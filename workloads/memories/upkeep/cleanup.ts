import { z } from 'zod'
import { type Clock, systemClock } from '../../../src/time/clock.ts'
import { toIso } from '../../../src/time/iso.ts'
import { textOf } from '../../database/columns.ts'
import type { Value, WorkloadDatabase } from '../../database/database.ts'
import { emptyLogOf } from '../../database/rewrite.ts'
import { BaseWorker, JOB_TYPES, type WorkerJob, type WorkerOutlets } from '../../framework/index.ts'
import { type MemoryRemoval, removeRows } from '../removal.ts'

export const cleanupPayload = z.strictObject({
  /** Memories that are less important are removed; default: 0.05. 0 removes none. */
  importanceBelow: z.number().min(0).max(1).default(0.05),
  /** Only those that were saved so many days ago; default: 30. */
  olderThanDays: z.number().min(0).max(36_500).default(30),
  /** Only those of these types; default: every type but `semantic`. */
  types: z.array(z.string().min(1)).min(1).exactOptional(),
})

export type MemoryCleanupData = z.infer<typeof cleanupPayload>

export interface MemoryCleanupResult {
  /** In this attempt. */
  readonly removedUnimportant: number
  /** Their `expiresAt` has passed, whatever their type and importance. */
  readonly removedExpired: number
  readonly vectorsRemoved: number
}

const DAY_MS = 86_400_000
const CHUNK = 500

/**
 * Removes memories that have expired, and old ones that have lost their importance, with their vectors. What was merged from
 * them stays.
 *
 * @example
 * await mill.enqueue(new MemoryCleanupWorker(database, removal).definition, { importanceBelow: 0.1, olderThanDays: 90 })
 */
export class MemoryCleanupWorker extends BaseWorker<
  MemoryCleanupData,
  MemoryCleanupResult,
  z.input<typeof cleanupPayload>
> {
  readonly #database: WorkloadDatabase
  readonly #removal: MemoryRemoval
  readonly #time: Clock

  constructor(database: WorkloadDatabase, removal: MemoryRemoval, outlets: WorkerOutlets = {}) {
    super(JOB_TYPES.MEMORY_CLEANUP, { concurrency: 1, payload: cleanupPayload }, outlets)
    this.#database = database
    this.#removal = removal
    this.#time = outlets.clock ?? systemClock
  }

  async process(data: MemoryCleanupData, job: WorkerJob<MemoryCleanupData>): Promise<MemoryCleanupResult> {
    const nowMs = this.#time.nowMs()
    const now = toIso(nowMs)
    const removedExpired = await this.#removeAll('expires_at <= $1', [now], job.signal)
    const { importanceBelow, olderThanDays, types } = data
    const typed = types === undefined ? `type <> 'semantic'` : `type IN ${this.#database.dialect.texts('$3')}`
    const removedUnimportant = await this.#removeAll(
      `importance < $1 AND created_at <= $2 AND ${typed}`,
      [importanceBelow, toIso(nowMs - olderThanDays * DAY_MS), ...(types === undefined ? [] : [JSON.stringify(types)])],
      job.signal,
    )
    const vectorsRemoved = await this.#removal.removeNoted(job.signal)
    if (removedExpired + removedUnimportant > 0 && !(await emptyLogOf(this.#database))) {
      this.logger.warn('Another process reads the database; removed text is still in its write-ahead log')
    }
    return { removedUnimportant, removedExpired, vectorsRemoved }
  }

  async #removeAll(condition: string, values: readonly Value[], signal: AbortSignal): Promise<number> {
    const now = toIso(this.#time.nowMs())
    for (let removed = 0; ; ) {
      signal.throwIfAborted()
      const count = await this.#database.transaction(async (queries) => {
        const rows = await queries.rows(
          `SELECT id FROM {memories} WHERE ${condition} ORDER BY id LIMIT ${CHUNK}${queries.dialect.forUpdate}`,
          values,
        )
        await removeRows(
          queries,
          rows.map((row) => textOf(row, 'id')),
          now,
        )
        return rows.length
      })
      removed += count
      if (count < CHUNK) return removed
    }
  }
}
