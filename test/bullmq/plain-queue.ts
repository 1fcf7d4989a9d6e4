/** BullMQ alone on a real Redis: a queue under a prefix of its own for each test, and workers that claim by hand. */
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Job, Queue, Worker, type WorkerOptions } from 'bullmq'
import { Redis } from 'ioredis'
import { dropPrefix, freshPrefix, redisServer } from '../servers/redis.ts'

export interface PlainQueue {
  readonly queue: Queue
  /** A connection of the test's own, to look and to meddle. */
  readonly redis: Redis
  /** The name of a key of the queue: `wait`, `active`, a job's id and so on. */
  key(name: string): string
  /** A worker without a function: jobs are claimed and settled by hand. */
  worker(options?: Partial<WorkerOptions>): Worker
  hash(job: Job | string): Promise<Readonly<Record<string, string>>>
}

const QUEUE = 'facts'

export async function plainQueue(t: TestContext): Promise<PlainQueue> {
  const { url } = await redisServer()
  const prefix = freshPrefix()
  const { hostname, port } = new URL(url)
  const connection = { host: hostname, port: Number(port), maxRetriesPerRequest: null }
  const redis = new Redis(url)
  const queue = new Queue(QUEUE, { connection, prefix })
  const workers: Worker[] = []
  const key = (name: string): string => `${prefix}:${QUEUE}:${name}`
  t.after(async () => {
    await Promise.all(workers.map((worker) => worker.close(true)))
    await queue.close()
    redis.disconnect()
    await dropPrefix(url, prefix)
  })
  await queue.waitUntilReady()
  return {
    queue,
    redis,
    key,
    worker(options = {}) {
      const worker = new Worker(QUEUE, null, { connection, prefix, autorun: false, ...options })
      worker.on('error', () => {})
      workers.push(worker)
      return worker
    },
    hash: (job) => redis.hgetall(key(typeof job === 'string' ? job : String(job.id))),
  }
}

/** The next job, which must be there. */
export async function claimed(worker: Worker, token: string): Promise<Job> {
  const job = await worker.getNextJob(token, { block: false })
  if (job === undefined) throw new Error('there is no job to claim')
  return job
}

/** What BullMQ's scripts answered, as its errors carry it. */
export async function codeOf(settled: Promise<unknown>): Promise<unknown> {
  try {
    await settled
  } catch (error) {
    return error instanceof Error && 'code' in error ? error.code : error
  }
  return 'no error'
}

/** Waits far longer than it ever takes: a machine that is busy or stands still for seconds is no failure. */
export async function until(condition: () => Promise<boolean>): Promise<void> {
  const untilMs = performance.now() + 60_000
  while (performance.now() < untilMs) {
    if (await condition()) return
    await sleep(5)
  }
  throw new Error('it did not come true within a minute')
}
