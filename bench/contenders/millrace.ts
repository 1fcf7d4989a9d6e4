/**
 * Millrace as its README has it: `open`, `defineJob`, `enqueue`, `work`, with defaults for all the rest, in a process
 * set up as `millrace work` sets up its own.
 */
import { join } from 'node:path'
import { boundYoungHeap } from '../../src/cli/young-heap.ts'
import type { Consumer } from '../../src/engine/engine.ts'
import { applyMigrations } from '../../src/engine/open.ts'
import { defineJob, type Mill, open } from '../../src/index.ts'
import { retainOnce } from '../../src/keeper/retention.ts'
import { systemClock } from '../../src/time/clock.ts'
import type {
  Claimed,
  Claiming,
  Contender,
  ContenderEntry,
  Levels,
  Place,
  Retaining,
  Working,
  WorkRequest,
} from '../contender.ts'
import type { Payload } from '../payload.ts'
import { CONNECTIONS } from '../servers/postgres.ts'
import { fillJobQueue } from './fill-job-queue.ts'
import { fillJobs } from './fill-jobs.ts'

const TYPE = 'bench'
const LEASE_MS = 60_000

/** Without a schema, as the peers have none; the type of the payload is given by the handler. */
const job = defineJob({ type: TYPE })

/** What the forms of Millrace differ in. */
interface Form {
  url(place: Place): string
  /** Whether opening leaves the schema to `millrace migrate`. */
  readonly migrates?: true
  /** Fills the store from outside, where that is possible. */
  fill?(place: Place, levels: Levels): Promise<void>
}

class Millrace implements Contender {
  readonly bulkSize = 1_000
  readonly claiming?: Claiming
  readonly retaining?: Retaining
  readonly #form: Form
  #mill: Mill | null = null
  #consumer: Consumer | null = null
  #place: Place | null = null

  constructor(form: Form) {
    this.#form = form
    const { fill } = form
    if (fill !== undefined) {
      this.claiming = {
        fill: (levels) => fill(this.#given, levels),
        claim: (max) => this.#claim(max),
      }
      this.retaining = { retain: () => this.#retain() }
    }
  }

  async setup(place: Place): Promise<void> {
    boundYoungHeap()
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
    const mill = this.#opened
    const off = mill.events.on('worker.error', ({ error }) => request.onError(error))
    // What is stored is what this contender enqueued.
    const handled = job.handledBy(({ payload }) => request.onJob(payload as Payload))
    const worker = await mill.work([handled], { concurrency: request.concurrency })
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

const onSqlite = (synchronous: 'full' | 'normal'): Form => ({
  url: (place) => `sqlite:${fileOf(place)}?synchronous=${synchronous}`,
  fill: async (place, levels) => fillJobQueue(fileOf(place), TYPE, levels),
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
  },
  'millrace-redis': { url: databaseOf },
  'millrace-kafka': { url: databaseOf },
}

export function create(entry: ContenderEntry): Contender {
  const form = FORMS[entry.name]
  if (form === undefined) throw new Error(`'${entry.name}' is not a form of Millrace that can be measured`)
  return new Millrace(form)
}
