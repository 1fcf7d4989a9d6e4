/** plainjob with its own defaults; only its logger is silenced, as anyone measuring it would. */
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { better, defineQueue, defineWorker, JobStatus, type Queue } from 'plainjob'
import type { Claimed, Contender, Levels, Mixing, Place, Starting, Working, WorkRequest } from '../contender.ts'
import { MIXED_TYPE_NAMES } from '../mixture.ts'
import { FILLED_PAYLOAD, makePayload, type Payload } from '../payload.ts'
import { installProgram } from './installed.ts'

/** The part of better-sqlite3 used here; the package brings no types of its own. */
interface Database {
  exec(sql: string): void
  pragma(sql: string): unknown
  prepare(sql: string): {
    get(...values: unknown[]): { count?: unknown } | undefined
    run(...values: unknown[]): unknown
  }
  close(): void
}
const Database: new (file: string) => Database = createRequire(import.meta.url)('better-sqlite3')

const TYPE = 'bench'
const DAY_MS = 86_400_000
const COUNT = `select count(*) as count from plainjob_jobs
  where status = @status and type = '${TYPE}' and next_run_at > @from and next_run_at <= @to`
const FILL = `
  insert into plainjob_jobs (type, data, status, next_run_at, created_at)
  with recursive numbers(n) as (select @first where @first < @end union all select n + 1 from numbers where n + 1 < @end)
  select '${TYPE}', ${FILLED_PAYLOAD}, @status, @due + n, @nowMs from numbers`
const PROGRAM = `import Database from 'better-sqlite3'
import { better, defineQueue } from 'plainjob'
const [file, payload] = process.argv.slice(2)
const nothing = () => {}
const logger = { error: nothing, warn: nothing, info: nothing, debug: nothing }
const queue = defineQueue({ connection: better(new Database(file)), logger })
queue.add('${TYPE}', JSON.parse(payload))
queue.close()
`
const nothing = (): void => {}
const silent = { error: nothing, warn: nothing, info: nothing, debug: nothing }

const fileOf = ({ dir }: Place): string => join(dir, 'plainjob.db')

class Plainjob implements Contender {
  readonly bulkSize = 1_000
  readonly claiming = { fill: (levels: Levels) => this.#fill(levels), claim: (max: number) => this.#claim(max) }
  readonly mixing: Mixing = {
    lacks: new Set(['priorities', 'retries']),
    enqueue: async ({ type, delayMs, payload }) => {
      this.#opened.add(type, payload, { delay: delayMs })
    },
    // One worker has one type and one job at a time.
    work: async (request) => {
      const run = (job: { readonly data: string }) => request.onJob(JSON.parse(job.data))
      const workers = MIXED_TYPE_NAMES.map((type) => defineWorker(type, run, { queue: this.#opened, logger: silent }))
      const ended = Promise.all(workers.map((worker) => worker.start())).catch(request.onError)
      return {
        stop: async () => {
          await Promise.all(workers.map((worker) => worker.stop()))
          await ended
        },
      }
    },
  }
  readonly starting: Starting = {
    install: async ({ dir }) => void installProgram(dir, ['better-sqlite3', 'plainjob'], PROGRAM),
    programs: ({ dir }, store) => ({
      program: (n) => ({ args: [join(dir, 'program.js'), fileOf(store), JSON.stringify(makePayload(n))] }),
    }),
  }
  #queue: Queue | null = null
  #file = ''

  async setup(place: Place): Promise<void> {
    this.#file = fileOf(place)
    this.#queue = defineQueue({ connection: better(new Database(this.#file)), logger: silent })
  }

  async enqueueOne(payload: Payload): Promise<void> {
    this.#opened.add(TYPE, payload)
  }

  async enqueueBulk(payloads: readonly Payload[]): Promise<void> {
    this.#opened.addMany(TYPE, [...payloads])
  }

  /**
   * One worker whatever the concurrency: its calls are synchronous, so further workers in the process add nothing
   * (tried with 50: no faster).
   */
  async work(request: WorkRequest): Promise<Working> {
    const run = (job: { readonly data: string }) => request.onJob(JSON.parse(job.data))
    const worker = defineWorker(TYPE, run, { queue: this.#opened, logger: silent })
    const ended = worker.start().catch(request.onError)
    return {
      stop: async () => {
        await worker.stop()
        await ended
      },
    }
  }

  async remaining(): Promise<number> {
    const count = (status: JobStatus) => this.#opened.countJobs({ type: TYPE, status })
    return count(JobStatus.Pending) + count(JobStatus.Processing)
  }

  async teardown(): Promise<void> {
    this.#opened.close()
  }

  /** It claims singly, so a claim of 50 is 50 of its claims and reads. */
  async #claim(max: number): Promise<Claimed> {
    const queue = this.#opened
    const payloads: Payload[] = []
    const ids: number[] = []
    for (let taken = 0; taken < max; taken += 1) {
      const marked = queue.getAndMarkJobAsProcessing(TYPE)
      const job = marked === undefined ? undefined : queue.getJobById(marked.id)
      if (job === undefined) break
      ids.push(job.id)
      payloads.push(JSON.parse(job.data))
    }
    const complete = async (): Promise<void> => {
      for (const id of ids) queue.markJobAsDone(id)
    }
    return { payloads, complete }
  }

  async #fill(levels: Levels): Promise<void> {
    const db = new Database(this.#file)
    db.pragma('synchronous = off')
    const nowMs = Date.now()
    const conditions = [
      { status: JobStatus.Pending, due: nowMs - 2 * DAY_MS, from: 0, to: nowMs, count: levels.waiting },
      { status: JobStatus.Pending, due: nowMs + 2 * DAY_MS, from: nowMs, to: 2 * nowMs, count: levels.scheduled },
      { status: JobStatus.Done, due: nowMs - 2 * DAY_MS, from: 0, to: nowMs, count: levels.finished },
    ]
    for (const { status, due, from, to, count } of conditions) {
      const there = Number(db.prepare(COUNT).get({ status, from, to })?.count)
      db.prepare(FILL).run({ status, due, nowMs, first: there, end: count })
    }
    db.pragma('wal_checkpoint(truncate)')
    db.close()
  }

  get #opened(): Queue {
    if (this.#queue === null) throw new Error('setup comes first')
    return this.#queue
  }
}

export function create(): Contender {
  return new Plainjob()
}
