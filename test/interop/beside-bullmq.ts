/** Millrace and plain BullMQ side by side on the same keys of a real Redis. */
import type { TestContext } from 'node:test'
import { type ConnectionOptions, FlowProducer, Queue, QueueEvents, Worker, type WorkerOptions } from 'bullmq'
import { Redis } from 'ioredis'
import { type JobView, type Mill, type MillOptions, open } from 'millrace'
import { dropPrefix, prefixUrl, redisServer } from '../servers/redis.ts'

export interface BesideBullmq {
  readonly mill: Mill
  readonly url: string
  readonly prefix: string
  readonly connection: ConnectionOptions
  /** A connection of the test's own, to look and to meddle. */
  readonly redis: Redis
  /** What a program that knows only BullMQ would open. */
  queue(name: string): Queue
  flows(): FlowProducer
  events(name: string): Promise<QueueEvents>
  worker(name: string, run: (data: unknown) => Promise<unknown>, options?: Partial<WorkerOptions>): Worker
}

export async function besideBullmq(t: TestContext, options: MillOptions = {}, pollMs = 1_000): Promise<BesideBullmq> {
  const server = await redisServer()
  const { url, prefix } = prefixUrl(server)
  const { hostname, port } = new URL(url)
  const connection = { host: hostname, port: Number(port), maxRetriesPerRequest: null }
  const mill = await open(`${url}&poll=${pollMs}`, options)
  const redis = new Redis(server.url)
  const opened: { close(): Promise<unknown> }[] = []
  t.after(async () => {
    await mill.close()
    await Promise.all(opened.map((one) => one.close()))
    redis.disconnect()
    await dropPrefix(server.url, prefix)
  })
  const keep = <One extends { close(): Promise<unknown> }>(one: One): One => {
    opened.push(one)
    return one
  }
  return {
    mill,
    url,
    prefix,
    connection,
    redis,
    queue: (name) => keep(new Queue(name, { connection, prefix })),
    flows: () => keep(new FlowProducer({ connection, prefix })),
    async events(name) {
      const events = keep(new QueueEvents(name, { connection, prefix, lastEventId: '0' }))
      await events.waitUntilReady()
      return events
    },
    worker: (name, run, more = {}) =>
      keep(new Worker(name, (job) => run(job.data), { connection, prefix, ...more }).on('error', () => {})),
  }
}

/** The job once it is over, or as it is after a minute. */
export async function over(mill: Mill, id: string): Promise<JobView> {
  await mill.result(id, { timeout: '60s' }).catch(() => {})
  const view = await mill.job(id)
  if (view === null) throw new Error(`there is no job ${id}`)
  return view
}
