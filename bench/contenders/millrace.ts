/**
 * Millrace as its README has it: `open`, `defineJob`, `enqueue`, `work`, with defaults for all the rest, in a process
 * set up as `millrace work` sets up its own.
 */
import { join } from 'node:path'
import { boundYoungHeap } from '../../src/cli/young-heap.ts'
import type { Consumer } from '../../src/engine/engine.ts'
import { defineJob, type Mill, open } from '../../src/index.ts'
import type { Claimed, Claiming, Contender, ContenderEntry, Levels, Place, Working, WorkRequest } from '../contender.ts'
import type { Payload } from '../payload.ts'
import { fillJobQueue } from './fill-job-queue.ts'

const TYPE = 'bench'
const LEASE_MS = 60_000

/** Without a schema, as the peers have none; the type of the payload is given by the handler. */
const job = defineJob({ type: TYPE })

type Durability = 'full' | 'normal' | null

class Millrace implements Contender {
  readonly bulkSize = 1_000
  readonly claiming?: Claiming
  readonly #durability: Durability
  #mill: Mill | null = null
  #consumer: Consumer | null = null
  #file = ''

  constructor(durability: Durability) {
    this.#durability = durability
    if (durability !== null) {
      this.claiming = {
        fill: async (levels: Levels) => fillJobQueue(this.#file, TYPE, levels),
        claim: (max) => this.#claim(max),
      }
    }
  }

  async setup(place: Place): Promise<void> {
    boundYoungHeap()
    this.#file = join(place.dir, 'millrace.db')
    this.#mill = await open(
      this.#durability === null ? 'memory:' : `sqlite:${this.#file}?synchronous=${this.#durability}`,
    )
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

  get #opened(): Mill {
    if (this.#mill === null) throw new Error('setup comes first')
    return this.#mill
  }
}

const DURABILITIES: Readonly<Record<string, Durability>> = {
  'millrace-full': 'full',
  'millrace-normal': 'normal',
  'millrace-memory': null,
}

export function create(entry: ContenderEntry): Contender {
  const durability = DURABILITIES[entry.name]
  if (durability === undefined) throw new Error(`'${entry.name}' is not a form of Millrace that can be measured`)
  return new Millrace(durability)
}
