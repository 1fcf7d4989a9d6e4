import type { Receipt } from '../../engine/engine.ts'
import { EngineError, UnknownJobError } from '../../errors.ts'
import type { NewJob } from '../../job/job.ts'
import type { RedisDatabase } from './database.ts'
import { queueOf } from './keys.ts'
import { PORTION, storeInPortions } from './large-batch.ts'
import { enqueueScript } from './lua/enqueue.ts'
import { enqueuePlainScript } from './lua/enqueue-plain.ts'

/** Redis does nothing else while it stores a batch, and takes no more than a million arguments. */
const BATCH_MAX = 50_000

/** All jobs or none. */
export async function storeJobs(database: RedisDatabase, jobs: readonly NewJob[]): Promise<readonly Receipt[]> {
  if (jobs.length > BATCH_MAX) {
    throw new EngineError(
      'ERR_UNSUPPORTED',
      `${jobs.length} jobs in one batch would stop Redis for too long; split it into batches of ${BATCH_MAX} at most`,
    )
  }
  return receiptsFrom(jobs, await answerTo(database, jobs))
}

function answerTo(database: RedisDatabase, jobs: readonly NewJob[]): Promise<unknown> {
  if (!jobs.every(isPlain)) return database.run(enqueueScript(), enqueueArgs(jobs))
  if (jobs.length > PORTION && areDistinct(jobs)) return storeInPortions(database, jobs)
  return database.run(enqueuePlainScript(), enqueueArgs(jobs))
}

/** In portions the first of two with one id could be over before the second is looked at. */
function areDistinct(jobs: readonly NewJob[]): boolean {
  return new Set(jobs.map(({ id }) => id)).size === jobs.length
}

/** Tied to no other job. */
function isPlain({ key, latest, after }: NewJob): boolean {
  return key === null && latest === null && after === null
}

/** What `enqueueAll` in Lua reads: the number of jobs, whether one comes after others, and 14 values for each. */
export function enqueueArgs(jobs: readonly NewJob[]): (string | number)[] {
  const args: (string | number)[] = [jobs.length, jobs.some(({ after }) => after !== null) ? '1' : '0']
  for (const job of jobs) {
    const { latest, after } = job
    args.push(
      queueOf(job.type),
      job.id,
      job.type,
      job.payload,
      job.runAtMs ?? '',
      job.delayMs,
      job.priority,
      job.attempts,
      job.key ?? '',
      moreOf(job),
      latest?.key ?? '',
      latest?.seq ?? '',
      after?.ids.join('\n') ?? '',
      after?.ifDead ?? '',
    )
  }
  return args
}

/** What BullMQ has no place for, as JSON; empty for a plain job, which then costs nothing. */
function moreOf({ payloadVersion, key, latest, tenant, options }: NewJob): string {
  if (payloadVersion === 1 && key === null && latest === null && tenant === null && options === null) return ''
  return JSON.stringify({
    ...(payloadVersion !== 1 && { v: payloadVersion }),
    ...(key !== null && { key }),
    ...(latest !== null && { latest: { key: latest.key } }),
    ...(tenant !== null && { tenant }),
    ...(options !== null && { options }),
  })
}

const STATUSES: readonly string[] = ['enqueued', 'duplicate', 'replaced', 'stale'] satisfies Receipt['status'][]

function isStatus(text: unknown): text is Receipt['status'] {
  return typeof text === 'string' && STATUSES.includes(text)
}

export function receiptsFrom(jobs: readonly NewJob[], answer: unknown): readonly Receipt[] {
  const answers: readonly unknown[] = Array.isArray(answer) ? answer : []
  if (answers[0] === 'unknown') throw new UnknownJobError(String(answers[1]))
  return jobs.map((job, index) => {
    const status = answers[2 * index]
    if (isStatus(status)) return { id: String(answers[2 * index + 1]), status }
    throw new EngineError(
      'ERR_STORAGE_FAILED',
      `Redis gave no receipt for job ${job.id}; whether it is stored is unknown`,
    )
  })
}
