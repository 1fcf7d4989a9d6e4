/** graphile-worker with its own settings, and with those that its documentation gives for the highest throughput. */
import { Logger, makeWorkerUtils, run, type WorkerUtils } from 'graphile-worker'
import type { Contender, ContenderEntry, Place, Working, WorkRequest } from '../contender.ts'
import type { Payload } from '../payload.ts'
import { CONNECTIONS } from '../servers/postgres.ts'

const TASK = 'bench'
const REMAINING = 'select count(*) as count from graphile_worker.jobs where run_at <= now()'

/** From the page «Performance» of its documentation. */
const TUNED = { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 }

const silent = new Logger(() => () => {})

class GraphileWorker implements Contender {
  readonly bulkSize = 1_000
  readonly #settings: Partial<typeof TUNED>
  #url = ''
  #utils: WorkerUtils | null = null

  constructor(settings: Partial<typeof TUNED>) {
    this.#settings = settings
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

  async work(request: WorkRequest): Promise<Working> {
    const runner = await run({
      preset: {
        worker: {
          connectionString: this.#url,
          maxPoolSize: CONNECTIONS,
          concurrentJobs: request.concurrency,
          ...this.#settings,
        },
      },
      // What is stored is what this contender enqueued.
      taskList: { [TASK]: async (payload) => request.onJob(payload as Payload) },
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
