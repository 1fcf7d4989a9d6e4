import { z } from 'zod'
import { type Clock, systemClock } from '../../../src/time/clock.ts'
import { toIso } from '../../../src/time/iso.ts'
import { dateOf, maybe, numberOf } from '../../database/columns.ts'
import type { Queries, WorkloadDatabase } from '../../database/database.ts'
import { BaseWorker, JOB_TYPES, type WorkerJob, type WorkerOutlets } from '../../framework/index.ts'

const decayPayload = z.strictObject({
  /** Every importance is multiplied by it: above 0, at most 1. */
  decayFactor: z.number().positive().max(1),
})

export type MemoryDecayData = z.infer<typeof decayPayload>

export interface MemoryDecayResult {
  /** In all attempts of this job. */
  readonly memoriesDecayed: number
}

/** Memories in one transaction: other writers wait for it. */
const CHUNK = 1_000
/** Smaller importances become 0, because Postgres refuses a product that is too small for a number. */
const SMALLEST = 1e-9
/** Longer than a job stays, so that none of its runs is forgotten before it. */
const KEEP_MS = 180 * 86_400_000

/**
 * Multiplies the importance of all memories by a factor, once for each job: a retry goes on where the last attempt stopped, and
 * a second run finds it done. Memories that are saved after the first start keep theirs.
 *
 * @example
 * await mill.work([new MemoryDecayWorker(database).definition])
 */
export class MemoryDecayWorker extends BaseWorker<MemoryDecayData, MemoryDecayResult> {
  readonly #database: WorkloadDatabase
  readonly #time: Clock

  constructor(database: WorkloadDatabase, outlets: WorkerOutlets = {}) {
    super(JOB_TYPES.MEMORY_IMPORTANCE_DECAY, { concurrency: 1, payload: decayPayload }, outlets)
    this.#database = database
    this.#time = outlets.clock ?? systemClock
  }

  async process({ decayFactor }: MemoryDecayData, job: WorkerJob<MemoryDecayData>): Promise<MemoryDecayResult> {
    const run = { id: job.id, factor: decayFactor, now: toIso(this.#time.nowMs()) }
    for (;;) {
      job.signal.throwIfAborted()
      const { isDone, decayed } = await this.#database.transaction((queries) => decayChunk(queries, run))
      if (isDone) {
        await this.#prune()
        return { memoriesDecayed: decayed }
      }
      await job.updateProgress({ memoriesDecayed: decayed })
    }
  }

  async #prune(): Promise<void> {
    const values = [toIso(this.#time.nowMs() - KEEP_MS)]
    await this.#database.write([{ sql: 'DELETE FROM {memory_decays} WHERE finished_at < $1', values }])
  }
}

interface Run {
  readonly id: string
  readonly factor: number
  readonly now: string
}

/** The place that the run has reached moves in the transaction that decays, so no memory is taken twice. */
async function decayChunk(queries: Queries, run: Run): Promise<{ readonly isDone: boolean; readonly decayed: number }> {
  const { after, factor, started, isDone, decayed } = await lockedRun(queries, run)
  if (isDone) return { isDone, decayed }
  const [chunk = {}] = await queries.rows(
    `SELECT max(seq) AS last, count(*) AS size FROM (SELECT seq FROM {memories} WHERE seq > $1 AND created_at <= $2
     ORDER BY seq LIMIT ${CHUNK}) AS chunk`,
    [after, started],
  )
  const size = numberOf(chunk, 'size')
  if (size === 0) {
    await queries.rows('UPDATE {memory_decays} SET finished_at = $2 WHERE run_id = $1', [run.id, run.now])
    return { isDone: true, decayed }
  }
  const last = numberOf(chunk, 'last')
  await queries.rows(
    `UPDATE {memories} SET importance = CASE WHEN importance < ${SMALLEST} THEN 0 ELSE importance * $4 END
     WHERE seq > $1 AND seq <= $2 AND created_at <= $3`,
    [after, last, started, factor],
  )
  await queries.rows('UPDATE {memory_decays} SET after_seq = $2, decayed = $3 WHERE run_id = $1', [
    ...[run.id, last, decayed + size],
  ])
  return { isDone: false, decayed: decayed + size }
}

async function lockedRun(queries: Queries, { id, factor, now }: Run) {
  await queries.rows(
    `INSERT INTO {memory_decays} (run_id, factor, after_seq, decayed, started_at) VALUES ($1, $2, 0, 0, $3)
     ON CONFLICT (run_id) DO NOTHING`,
    [id, factor, now],
  )
  const [row = {}] = await queries.rows(
    `SELECT factor, after_seq, decayed, started_at, finished_at FROM {memory_decays} WHERE run_id = $1${queries.dialect.forUpdate}`,
    [id],
  )
  return {
    after: numberOf(row, 'after_seq'),
    factor: numberOf(row, 'factor'),
    started: toIso(dateOf(row, 'started_at').getTime()),
    isDone: maybe(dateOf, row, 'finished_at') !== null,
    decayed: numberOf(row, 'decayed'),
  }
}
