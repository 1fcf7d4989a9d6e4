/**
 * Millrace as its README has it: `open`, `defineJob`, `enqueue`, `work`, with defaults for all the rest, in a process
 * without flags of V8, as an application has it.
 */
import { join } from 'node:path'
import type { Consumer } from '../../src/engine/engine.ts'
import { applyMigrations } from '../../src/engine/open.ts'
import { defineJob, type Mill, open } from '../../src/index.ts'
import { retainOnce } from '../../src/keeper/retention.ts'
import { systemClock } from '../../src/time/clock.ts'
import { filling, fillPostgres, fillSqlite } from '../admin/fill.ts'
import type {
  Claimed,
  Claiming,
  Contender,
  ContenderEntry,
  Levels,
  Listing,
  Mixing,
  Place,
  Retaining,
  Starting,
  Working,
  WorkRequest,
} from '../contender.ts'
import { MIXED_TYPE_NAMES, type MixedPayload } from '../mixture.ts'
import { makePayload, type Payload } from '../payload.ts'
import { CONNECTIONS } from '../servers/postgres.ts'
import { fillJobQueue } from './fill-job-queue.ts'
import { fillJobs } from './fill-jobs.ts'

const TYPE = 'bench'
const LEASE_MS = 60_000
const PRIORITIES = { first: 1, usual: 5, last: 9 } as const

/** Without a schema, as the peers have none; the type of the payload is given by the handler. */
const job = defineJob({ type: TYPE })
const MIXED_JOBS = new Map(MIXED_TYPE_NAMES.map((type) => [type, defineJob({ type })]))

/** What the forms of Millrace differ in. */
interface Form {
  url(place: Place): string
  /** Whether opening leaves the schema to `millrace migrate`. */
  readonly migrates?: true
  /** Fills the store from outside, where that is possible. */
  fill?(place: Place, levels: Levels): Promise<void>
  /** The same with jobs in all conditions. */
  fillAll?(place: Place, jobs: number): Promise<void>
  readonly starting?: Starting
}

class Millrace implements Contender {
  readonly bulkSize = 1_000
  readonly claiming?: Claiming
  readonly retaining?: Retaining
  readonly starting?: Starting
  readonly listing?: Listing
  readonly mixing: Mixing = {
    lacks: new Set(),
    enqueue: async ({ type, urgency, delayMs, payload }) => {
      await this.#opened.enqueue(MIXED_JOBS.get(type) ?? type, payload, {
        priority: PRIORITIES[urgency],
        delay: delayMs,
      })
    },
    work: (request) => {
      const handledBy = (each: typeof job) => each.handledBy(({ payload }) => request.onJob(payload as MixedPayload))
      return this.#work([...MIXED_JOBS.values()].map(handledBy), request)
    },
  }
  readonly #form: Form
  #mill: Mill | null = null
  #consumer: Consumer | null = null
  #place: Place | null = null

  constructor(form: Form) {
    this.#form = form
    const { fill, fillAll, starting } = form
    if (fillAll !== undefined) {
      this.listing = {
        fill: (jobs) => fillAll(this.#given, jobs),
        counts: () => this.#opened.counts(),
        serve: () => this.#serve(),
      }
    }
    if (starting !== undefined) this.starting = starting
    if (fill !== undefined) {
      this.claiming = {
        fill: (levels) => fill(this.#given, levels),
        claim: (max) => this.#claim(max),
      }
      this.retaining = { retain: () => this.#retain() }
    }
  }

  async setup(place: Place): Promise<void> {
    this.#place = place
    const url = this.#form.url(place)
    if (this.#form.migrates === true) await applyMigrations(url, { clock: systemClock, migrate: true })
    this.#mill = await open(url)
  }

  async enqueueOne(payload: Payload): Promise<void> {
    await this.#opened.enqueue(job, payload)
  }

  async enqueueBulk(payloads: readonly Payload[]): Promise<void> {
    await this.#opened.enqueueMany(job, payloads)
  }

  async work(request: WorkRequest): Promise<Working> {
    // What is stored is what this contender enqueued.
    return this.#work([job.handledBy(({ payload }) => request.onJob(payload as Payload))], request)
  }

  async #work(
    jobs: Parameters<Mill['work']>[0],
    request: Pick<WorkRequest, 'concurrency' | 'onError'>,
  ): Promise<Working> {
    const mill = this.#opened
    const off = mill.events.on('worker.error', ({ error }) => request.onError(error))
    const worker = await mill.work(jobs, { concurrency: request.concurrency })
    return {
      stop: async () => {
        await worker.stop()
        off()
      },
    }
  }

  async remaining(): Promise<number> {
    const counts = (await this.#opened.counts())[TYPE]
    return counts === undefined ? 0 : counts.ready + counts.inProgress
  }

  async teardown(): Promise<void> {
    await this.#opened.close()
  }

  /** Loaded here: the memory of a worker is measured in a process that loads this file. */
  async #serve() {
    const { createAdmin } = await import('../../src/http/index.ts')
    const admin = createAdmin(this.#opened)
    const { url } = await admin.listen({ port: 0 })
    return { url, close: () => admin.close() }
  }

  async #retain(): Promise<number> {
    const { engine, events } = this.#opened
    const { removed } = await retainOnce({ engine, events, clock: systemClock }, { completed: 0 })
    return removed
  }

  async #claim(max: number): Promise<Claimed> {
    const types = [{ type: TYPE, leaseMs: LEASE_MS }]
    const worker = `bench:${process.pid}:claim`
    this.#consumer ??= await this.#opened.engine.consume({ types, worker })
    const consumer = this.#consumer
    const leases = await consumer.claim({ max, waitMs: 0, signal: new AbortController().signal })
    return {
      payloads: leases.map((lease) => JSON.parse(lease.job.payload)),
      complete: async () => {
        const outcome = { kind: 'complete', result: 'null', durationMs: 0 } as const
        const lost = await consumer.settle(leases.map((lease) => ({ lease, outcome })))
        if (lost.length > 0) throw new Error(`${lost.length} leases were lost`)
      },
    }
  }

  get #given(): Place {
    if (this.#place === null) throw new Error('setup comes first')
    return this.#place
  }

  get #opened(): Mill {
    if (this.#mill === null) throw new Error('setup comes first')
    return this.#mill
  }
}

const fileOf = (place: Place): string => join(place.dir, 'millrace.db')

const PROGRAM = `import { defineJob, open } from 'millrace'
const [file, payload] = process.argv.slice(2)
const mill = await open('sqlite:' + file)
await mill.enqueue(defineJob({ type: '${TYPE}' }), JSON.parse(payload))
await mill.close()
`

const installedStarts: Starting = {
  install: async ({ dir }) => {
    const { installMillrace } = await import('./installed.ts')
    await installMillrace(dir, PROGRAM)
  },
  programs: ({ dir }, store) => {
    const command = join(dir, 'node_modules/millrace/dist/bin/millrace.js')
    const env = { MILLRACE_ENGINE: `sqlite:${fileOf(store)}` }
    const payloadOf = (n: number): string => JSON.stringify(makePayload(n))
    return {
      program: (n) => ({ args: [join(dir, 'program.js'), fileOf(store), payloadOf(n)] }),
      enqueue: (n) => ({ args: [command, 'enqueue', TYPE, payloadOf(n)], env }),
      stats: () => ({ args: [command, 'stats'], env }),
      version: () => ({ args: [command, '--version'], env }),
    }
  },
}

const onSqlite = (synchronous: 'full' | 'normal'): Form => ({
  url: (place) => `sqlite:${fileOf(place)}?synchronous=${synchronous}`,
  fill: async (place, levels) => fillJobQueue(fileOf(place), TYPE, levels),
  async fillAll(place, jobs) {
    fillSqlite(fileOf(place), filling(jobs))
  },
  starting: installedStarts,
})

function databaseOf({ url }: Place): string {
  if (url === null) throw new Error('Millrace needs a server here')
  return url
}

const FORMS: Readonly<Record<string, Form>> = {
  'millrace-full': onSqlite('full'),
  'millrace-normal': onSqlite('normal'),
  'millrace-memory': { url: () => 'memory:' },
  'millrace-postgres': {
    url: (place) => `${databaseOf(place)}?pool=${CONNECTIONS}`,
    migrates: true,
    fill: (place, levels) => fillJobs(databaseOf(place), TYPE, levels),
    async fillAll(place, jobs) {
      await fillPostgres(databaseOf(place), filling(jobs))
    },
  },
  'millrace-redis': { url: databaseOf },
  'millrace-kafka': { url: databaseOf },
}

export function create(entry: ContenderEntry): Contender {
  const form = FORMS[entry.name]
  if (form === undefined) throw new Error(`'${entry.name}' is not a form of Millrace that can be measured`)
  return new Millrace(form)
}
