import { randomUUID } from 'node:crypto'
import { EngineError } from '../../errors.ts'
import type { NewJob } from '../../job/job.ts'
import type { RedisDatabase } from './database.ts'
import { enqueueArgs } from './enqueue.ts'
import { commitScript, publishScript, stageScript, unfinishedScript } from './lua/portions.ts'
import { listOf } from './reading.ts'

/** Jobs that one script stores: Redis serves nobody else meanwhile. */
export const PORTION = 1_000

/** Far longer than staging a batch takes. What a producer that died has staged stays in memory for that long. */
const STAGED_MS = 600_000

/** A producer that has published nothing for this long is dead, or will find that another has done it. */
const UNFINISHED_MS = 10_000

/**
 * Stores a batch of plain jobs, whole or not at all, without stopping Redis for the time that all of them take. The
 * portions are staged where nothing looks. One short script commits the batch, and only then each portion is published
 * by a script of its own. A producer that dies before the commit has stored nothing; the rest of a batch whose producer
 * dies after it is published by a reaper. Answers what `receiptsFrom` reads.
 */
export async function storeInPortions(
  database: RedisDatabase,
  jobs: readonly NewJob[],
  { stagedMs = STAGED_MS }: { readonly stagedMs?: number } = {},
): Promise<readonly unknown[]> {
  const batch = randomUUID()
  const portions = portionsOf(await resolved(database, jobs))
  await stage(database, batch, portions, stagedMs)
  if (Number(await database.run(commitScript(), [batch, portions.length])) === 0) {
    await unstage(database, batch, portions.length)
    throw new EngineError(
      'ERR_STORAGE_BUSY',
      `this batch of ${jobs.length} jobs took longer than ${stagedMs / 1_000} s to send, and nothing of it is stored; enqueue it again in smaller batches`,
    )
  }
  const answers: unknown[] = []
  for (const [index, portion] of portions.entries()) {
    const answer = listOf(await database.run(publishScript(), [batch, index + 1, portions.length]))
    // A reaper has done it; the jobs are plain, so each is stored under its own id.
    answers.push(...(answer.length > 0 ? answer : portion.flatMap(({ id }) => ['enqueued', id])))
  }
  return answers
}

/** A delay begins with the call, whenever its portion is published. */
async function resolved(database: RedisDatabase, jobs: readonly NewJob[]): Promise<readonly NewJob[]> {
  if (jobs.every(({ delayMs }) => delayMs === 0)) return jobs
  const nowMs = database.now === '' ? await database.serverNowMs() : Number(database.now)
  return jobs.map((job) =>
    job.runAtMs === null && job.delayMs > 0 ? { ...job, runAtMs: nowMs + job.delayMs, delayMs: 0 } : job,
  )
}

function portionsOf(jobs: readonly NewJob[]): readonly (readonly NewJob[])[] {
  const length = Math.ceil(jobs.length / PORTION)
  return Array.from({ length }, (_, index) => jobs.slice(index * PORTION, (index + 1) * PORTION))
}

async function stage(
  database: RedisDatabase,
  batch: string,
  portions: readonly (readonly NewJob[])[],
  stagedMs: number,
): Promise<void> {
  try {
    for (const [index, portion] of portions.entries()) {
      // The list begins with a place for the time, as the arguments of a script do.
      await database.run(stageScript(), [batch, index + 1, stagedMs, '', ...enqueueArgs(portion)])
    }
  } catch (error) {
    await unstage(database, batch, portions.length)
    throw error
  }
}

/** Of a batch that is not committed. If this fails too, what is left expires. */
async function unstage(database: RedisDatabase, batch: string, portions: number): Promise<void> {
  const keys = Array.from({ length: portions }, (_, index) => database.keys.staged(batch, index + 1))
  await database.call('unlink', ...keys).catch(() => {})
}

/** Publishes what is left of committed batches whose producer is dead. */
export async function finishBatches(database: RedisDatabase, signal: AbortSignal): Promise<void> {
  for (const entry of listOf(await database.run(unfinishedScript(), [UNFINISHED_MS]))) {
    const [batch = '', portions = ''] = String(entry).split(':')
    for (let number = 1; number <= Number(portions) && !signal.aborted; number += 1) {
      await database.run(publishScript(), [batch, number, portions])
    }
  }
}
