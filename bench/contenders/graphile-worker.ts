/** graphile-worker with its own settings, and with those that its documentation gives for the highest throughput. */
import { Logger, makeWorkerUtils, run, type TaskList, type WorkerUtils } from 'graphile-worker'
import type { Contender, ContenderEntry, Mixing, Place, Working, WorkRequest } from '../contender.ts'
import { MIXED_TYPE_NAMES, type MixedPayload } from '../mixture.ts'
import type { Payload } from '../payload.ts'
import { CONNECTIONS } from '../servers/postgres.ts'

const TASK = 'bench'
const REMAINING = 'select count(*) as count from graphile_worker.jobs where run_at <= now()'

/** From the page «Performance» of its documentation. */
const TUNED = { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 }

const PRIORITIES = { first: -10, usual: 0, last: 10 } as const

const silent = new Logger(() => () => {})

class GraphileWorker implements Contender {
  readonly bulkSize = 1_000
  readonly drainedMax?: number
  readonly mixing: Mixing = {
    lacks: new Set(),
    enqueue: async ({ type, urgency, delayMs, payload }) => {
      const runAt = delayMs === 0 ? {} : { runAt: new Date(Date.now() + delayMs) }
      await this.#opened.addJob(type, payload, { priority: PRIORITIES[urgency], maxAttempts: 3, ...runAt })
    },
    work: (request) => {
      const run = async (payload: unknown): Promise<void> => request.onJob(payload as MixedPayload)
      return this.#run(Object.fromEntries(MIXED_TYPE_NAMES.map((type) => [type, run])), request)
    },
  }
  readonly #settings: Partial<typeof TUNED>
  #url = ''
  #utils: WorkerUtils | null = null

  constructor(settings: Partial<typeof TUNED>) {
    this.#settings = settings
    if (settings.localQueue === undefined) this.drainedMax = 5_000
  }

  async setup({ url }: Place): Promise<void> {
    if (url === null) throw new Error('graphile-worker needs a server')
    this.#url = url
    this.#utils = await makeWorkerUtils({ connectionString: url, maxPoolSize: CONNECTIONS, logger: silent })
    await this.#utils.migrate()
  }

  async enqueueOne(payload: Payload): Promise<void> {
    await this.#opened.addJob(TASK, payload)
  }

  async enqueueBulk(payloads: readonly Payload[]): Promise<void> {
    await this.#opened.addJobs(payloads.map((payload) => ({ identifier: TASK, payload })))
  }

  work(request: WorkRequest): Promise<Working> {
    // What is stored is what this contender enqueued.
    return this.#run({ [TASK]: async (payload) => request.onJob(payload as Payload) }, request)
  }

  async #run(taskList: TaskList, request: Pick<WorkRequest, 'concurrency' | 'onError'>): Promise<Working> {
    const runner = await run({
      preset: {
        worker: {
          connectionString: this.#url,
          maxPoolSize: CONNECTIONS,
          concurrentJobs: request.concurrency,
          ...this.#settings,
        },
      },
      taskList,
      crontab: '',
      logger: silent,
      noHandleSignals: true,
    })
    const { events } = runner
    events.on('job:error', ({ error }) => request.onError(error))
    events.on('worker:getJob:error', ({ error }) => request.onError(error))
    events.on('worker:fatalError', ({ error }) => request.onError(error))
    events.on('pool:listen:error', ({ error }) => request.onError(error))
    runner.promise.catch(request.onError)
    return { stop: () => runner.stop() }
  }

  async remaining(): Promise<number> {
    const { rows } = await this.#opened.withPgClient((client) => client.query(REMAINING))
    return Number(rows[0]?.count)
  }

  async teardown(): Promise<void> {
    await this.#opened.release()
  }

  get #opened(): WorkerUtils {
    if (this.#utils === null) throw new Error('setup comes first')
    return this.#utils
  }
}

export function create(entry: ContenderEntry): Contender {
  return new GraphileWorker(entry.name === 'graphile-worker-tuned' ? TUNED : {})
}
