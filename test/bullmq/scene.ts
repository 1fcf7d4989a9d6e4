import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { FlowProducer, Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import type { DeadLetters, Engine, Inspector } from '../../src/engine/engine.ts'
import { connect } from '../../src/engines/redis/module.ts'
import type { NewJob } from '../../src/job/job.ts'
import { systemClock } from '../../src/time/clock.ts'
import { newJob as plainJob } from '../fixtures/new-job.ts'
import { dropPrefix, prefixUrl, redisServer } from '../servers/redis.ts'

/** An engine and plain BullMQ over the same keys, which are removed at the end of the test. */
export interface Scene {
  readonly engine: Engine
  readonly inspector: Inspector
  readonly letters: DeadLetters
  readonly queue: Queue
  readonly flows: FlowProducer
  readonly redis: Redis
  readonly prefix: string
  /** Runs what is there with a worker of BullMQ's own until it has finished so many. */
  work(count: number, run: () => Promise<unknown>): Promise<void>
}

/** `parameters`: more of the engine's URL, such as `&poll=400`. */
export async function scene(t: TestContext, parameters = ''): Promise<Scene> {
  const server = await redisServer()
  const { url: plainUrl, prefix } = prefixUrl(server)
  const url = `${plainUrl}${parameters}`
  const { hostname, port } = new URL(url)
  const connection = { host: hostname, port: Number(port) }
  const engine = await connect(url, { clock: systemClock, migrate: true })
  const queue = new Queue('mail', { connection, prefix })
  const flows = new FlowProducer({ connection, prefix })
  const redis = new Redis(server.url)
  t.after(async () => {
    await queue.close()
    await flows.close()
    await engine.close()
    redis.disconnect()
    await dropPrefix(server.url, prefix)
  })
  // Millrace has met the type.
  await redis.sadd(`${prefix}::types`, 'mail')
  const { inspector, deadLetters: letters } = engine
  assert.ok(inspector && letters)
  const work = async (count: number, run: () => Promise<unknown>): Promise<void> => {
    const worker = new Worker('mail', run, { connection, prefix })
    const done = Promise.withResolvers<void>()
    let left = count
    const step = (): void => {
      left -= 1
      if (left === 0) done.resolve()
    }
    worker.on('completed', step)
    worker.on('failed', step)
    await done.promise
    await worker.close()
  }
  return { engine, inspector, letters, queue, flows, redis, prefix, work }
}

export function newJob(fields: Partial<NewJob> = {}): NewJob {
  return plainJob({ type: 'mail', payload: '1', ...fields })
}
