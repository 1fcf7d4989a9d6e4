/**
 * The smallest engine that keeps the contract: jobs in an array, lost with the process. Its capabilities do not promise
 * anything else, so the core refuses the rest. The conformance suite runs on it: see harness.ts.
 */
import { randomUUID } from 'node:crypto'
import {
  type Capabilities,
  type Clock,
  ClosedError,
  type Consumer,
  type Counts,
  type Engine,
  type NewJob,
  type Receipt,
  type StoredJob,
  type Subscription,
  type TypeCounts,
} from 'millrace/engine'
import { ArrayConsumer } from './array-consumer.ts'

const CAPABILITIES: Capabilities = Object.freeze({
  scope: 'store',
  survives: 'nothing',
  settle: 'immediate',
  recovery: 'reaper',
  recoveryMaxMs: 30_000,
  enqueueDelayMaxMs: Number.POSITIVE_INFINITY,
  retryDelayMaxMs: Number.POSITIVE_INFINITY,
  order: 'fifo',
  keys: 'refused',
  latest: false,
  idempotentEnqueue: true,
  enqueueAtomic: true,
  transactionalEnqueue: false,
  limits: 'refused',
  slots: 'refused',
  dependencies: false,
})

export interface Row {
  readonly job: StoredJob
  state: 'queued' | 'inProgress' | 'completed' | 'dead'
  /** `leaseUntilMs` on the monotonic clock, so that a change of the wall clock has no effect. */
  dueMs: number
  attempt: number
  /** The fence: new at every claim. */
  token: string
  leaseUntilMs: number
}

/** What the views of one store share: the jobs, and the signal of a change. */
export class Store {
  readonly rows: Row[] = []
  #change = new AbortController()

  /** Aborts at the next change. */
  get change(): AbortSignal {
    return this.#change.signal
  }

  changed(): void {
    this.#change.abort()
    this.#change = new AbortController()
  }
}

const NO_JOBS: TypeCounts = { ready: 0, delayed: 0, inProgress: 0, completed: 0, dead: 0 }

export class ArrayEngine implements Engine {
  readonly name = 'array'
  readonly capabilities = CAPABILITIES
  readonly threadUrl = null
  readonly clock: Clock
  readonly #store: Store
  readonly #closing = new AbortController()

  constructor(clock: Clock, store: Store) {
    this.clock = clock
    this.#store = store
  }

  async open(): Promise<void> {
    this.store()
  }

  async ping(): Promise<void> {
    this.store()
  }

  async close(): Promise<void> {
    this.#closing.abort()
  }

  get closing(): AbortSignal {
    return this.#closing.signal
  }

  /** Refuses every call but `close` once the engine is closed. */
  store(): Store {
    if (this.#closing.signal.aborted) throw new ClosedError('this engine')
    return this.#store
  }

  async enqueue(jobs: readonly NewJob[]): Promise<readonly Receipt[]> {
    const store = this.store()
    // Built before any is stored: a batch is stored whole or not at all.
    const made = jobs.map((job) => toRow(job, this.clock))
    const receipts = made.map((row): Receipt => {
      const { id } = row.job
      if (store.rows.some(({ job }) => job.id === id)) return { id, status: 'duplicate' }
      store.rows.push(row)
      return { id, status: 'enqueued' }
    })
    store.changed()
    return receipts
  }

  async consume(subscription: Subscription): Promise<Consumer> {
    this.store()
    return new ArrayConsumer(this, subscription)
  }

  async counts(): Promise<Counts> {
    const counts = new Map<string, TypeCounts>()
    for (const { job, state, dueMs } of this.store().rows) {
      const name = state !== 'queued' ? state : dueMs <= this.clock.monotonicMs() ? 'ready' : 'delayed'
      const of = counts.get(job.type) ?? NO_JOBS
      counts.set(job.type, { ...of, [name]: of[name] + 1 })
    }
    return Object.fromEntries(counts)
  }
}

function toRow({ delayMs, runAtMs, latest: _, ...job }: NewJob, clock: Clock): Row {
  const nowMs = clock.nowMs()
  const stored = { ...job, latestKey: null, createdAtMs: nowMs, runAtMs: runAtMs ?? nowMs + delayMs }
  const dueMs = clock.monotonicMs() + stored.runAtMs - nowMs
  return { job: stored, state: 'queued', dueMs, attempt: 0, token: randomUUID(), leaseUntilMs: 0 }
}
