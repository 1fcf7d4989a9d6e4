/** BullMQ on the Postgres backend that it brings since its version 6, with its own settings. */
import { createPostgresBackend, runMigrations, withBackend } from 'bullmq'
import type { Contender, Mixing, Place, Working, WorkRequest } from '../contender.ts'
import type { MixedPayload } from '../mixture.ts'
import type { Payload } from '../payload.ts'
import { CONNECTIONS, withClient } from '../servers/postgres.ts'
import { mixedOptions } from './mixed-options.ts'

const { Queue, Worker } = withBackend(createPostgresBackend)
const QUEUE = 'bench'

function connect(url: string) {
  return new Queue<Payload>(QUEUE, { connection: { connectionString: url, max: CONNECTIONS } })
}

class BullmqPostgres implements Contender {
  readonly bulkSize = 1_000
  readonly drainedMax = 5_000
  /** A queue of jobs with many names. */
  readonly mixing: Mixing = {
    lacks: new Set(),
    enqueue: async (job) => {
      await this.#opened.add(job.type, job.payload, mixedOptions(job))
    },
    // What is stored is what this contender enqueued.
    work: (request) => this.#work((payload) => request.onJob(payload as MixedPayload), request),
  }
  #url = ''
  #queue: ReturnType<typeof connect> | null = null
  #onError: (error: unknown) => void = () => {}

  async setup({ url }: Place): Promise<void> {
    if (url === null) throw new Error('the Postgres backend of BullMQ needs a server')
    this.#url = url
    await withClient(url, (client) => runMigrations(client))
    this.#queue = connect(url)
    this.#queue.on('error', (error) => this.#onError(error))
    await this.#queue.waitUntilReady()
  }

  async enqueueOne(payload: Payload): Promise<void> {
    await this.#opened.add(QUEUE, payload)
  }

  async enqueueBulk(payloads: readonly Payload[]): Promise<void> {
    await this.#opened.addBulk(payloads.map((data) => ({ name: QUEUE, data })))
  }

  work(request: WorkRequest): Promise<Working> {
    return this.#work((payload) => request.onJob(payload), request)
  }

  async #work(
    onJob: (payload: Payload) => Promise<void> | void,
    request: Pick<WorkRequest, 'concurrency' | 'onError'>,
  ): Promise<Working> {
    this.#onError = request.onError
    const worker = new Worker<Payload>(QUEUE, async (job) => onJob(job.data), {
      connection: { connectionString: this.#url, max: CONNECTIONS },
      concurrency: request.concurrency,
    })
    worker.on('error', request.onError)
    worker.on('failed', (_job, error) => request.onError(error))
    await worker.waitUntilReady()
    return { stop: () => worker.close() }
  }

  async remaining(): Promise<number> {
    return this.#opened.getJobCountByTypes('waiting', 'active', 'prioritized')
  }

  async teardown(): Promise<void> {
    await this.#opened.close()
  }

  get #opened(): ReturnType<typeof connect> {
    if (this.#queue === null) throw new Error('setup comes first')
    return this.#queue
  }
}

export function create(): Contender {
  return new BullmqPostgres()
}
