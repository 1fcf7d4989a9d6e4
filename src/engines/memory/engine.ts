import type { Capabilities } from '../../engine/capabilities.ts'
import type {
  Consumer,
  Controls,
  Counts,
  DeadLetters,
  Engine,
  Inspector,
  Receipt,
  Subscription,
  Transaction,
} from '../../engine/engine.ts'
import { type JobLogs, newestLines } from '../../engine/job-logs.ts'
import { createMemoryRecords } from '../../engine/memory-records.ts'
import type { Records } from '../../engine/records.ts'
import type { Retention } from '../../engine/retention.ts'
import { ClosedError, UnsupportedError } from '../../errors.ts'
import type { JobView, NewJob } from '../../job/job.ts'
import { type Clock, systemClock } from '../../time/clock.ts'
import { MemoryConsumer } from './consumer.ts'
import { createDeadLetters } from './dead-letters.ts'
import { createRetention } from './retention.ts'
import { isDueBefore, isFinished, type JobRow, toView } from './rows.ts'
import { MemoryStore } from './store.ts'
import { onAbort } from './wakeups.ts'

export interface MemoryEngineOptions {
  readonly clock?: Clock
  /** Engines over one store see the same jobs, as processes over one database do. Default: a new store. */
  readonly store?: MemoryStore
}

export const CAPABILITIES: Capabilities = Object.freeze({
  scope: 'store',
  survives: 'nothing',
  settle: 'immediate',
  recovery: 'reaper',
  recoveryMaxMs: 45_000,
  enqueueDelayMaxMs: Number.POSITIVE_INFINITY,
  retryDelayMaxMs: Number.POSITIVE_INFINITY,
  order: 'ageing-priority',
  keys: 'unique-live',
  latest: true,
  idempotentEnqueue: true,
  enqueueAtomic: true,
  transactionalEnqueue: false,
  limits: 'shared',
  slots: 'shared',
  dependencies: true,
})

/** The whole contract in this process's memory: for tests, for scripts, and for work that a restart may lose. */
export class MemoryEngine implements Engine {
  readonly name = 'memory'
  readonly capabilities = CAPABILITIES
  readonly threadUrl = null
  readonly inspector: Inspector
  readonly controls: Controls
  readonly deadLetters: DeadLetters
  readonly records: Records
  readonly retention: Retention
  readonly logs: JobLogs
  readonly #clock: Clock
  readonly #store: MemoryStore
  readonly #closing = new AbortController()

  constructor(options: MemoryEngineOptions = {}) {
    this.#clock = options.clock ?? systemClock
    this.#store = options.store ?? new MemoryStore()
    this.inspector = {
      find: async (ids) => {
        const store = this.#open()
        return ids.map((id) => viewOrNull(store.find(id)))
      },
      list: async (filter) => this.#open().list(filter).map(toView),
      oldestDue: async () => this.#oldestDue(),
      history: async (id) => [...(this.#open().find(id)?.history ?? [])],
      successors: async (ids) => this.#successors(new Set(ids)),
      waitFor: async (id, wait) => this.#waitFor(id, wait),
    }
    this.controls = {
      cancel: async (id, by) => this.#open().cancel(id, by, this.#clock.nowMs()),
    }
    this.deadLetters = createDeadLetters(() => this.#open(), this.#clock)
    this.records = createMemoryRecords({
      clock: this.#clock,
      table: () => this.#open().records,
      enqueue: (jobs, nowMs) => this.#open().enqueue(jobs, nowMs),
    })
    this.retention = createRetention(() => this.#open(), this.#clock)
    this.logs = {
      append: async (said, keep) => {
        const store = this.#open()
        for (const { job, skipped, lines } of said) {
          const row = store.find(job.id)
          if (row === null) continue
          const first = (row.said.at(-1)?.seq ?? 0) + skipped + 1
          row.said = newestLines([...row.said, ...lines.map((line, index) => ({ seq: first + index, line }))], keep)
        }
      },
      read: async (id) => this.#open().find(id)?.said ?? [],
    }
  }

  #oldestDue(): JobView | null {
    const nowMs = this.#clock.nowMs()
    let oldest: JobRow | null = null
    for (const row of this.#open().list({ state: 'queued', limit: Number.POSITIVE_INFINITY })) {
      if (row.dueMs <= nowMs && (oldest === null || isDueBefore(row, oldest))) oldest = row
    }
    return viewOrNull(oldest)
  }

  #successors(ids: ReadonlySet<string>): readonly string[] {
    const all = this.#open().list({ limit: Number.POSITIVE_INFINITY })
    return all.flatMap(({ job }) => (job.after?.ids.some((id) => ids.has(id)) === true ? [job.id] : []))
  }

  async close(): Promise<void> {
    this.#closing.abort()
  }

  async ping(): Promise<void> {
    this.#open()
  }

  async enqueue(jobs: readonly NewJob[], within?: Transaction): Promise<readonly Receipt[]> {
    if (within !== undefined) {
      throw new UnsupportedError({ engine: this.name, limit: 'cannot join a transaction; enqueue after your commit' })
    }
    // Copied before the first is stored: a getter that throws must not leave half a batch behind.
    const copies = jobs.map((job) => ({ ...job }))
    return this.#open().enqueue(copies, this.#clock.nowMs())
  }

  async consume(subscription: Subscription): Promise<Consumer> {
    const store = this.#open()
    return new MemoryConsumer({ store, clock: this.#clock, subscription, engineClosed: this.#closing.signal })
  }

  async counts(): Promise<Counts> {
    return this.#open().counts(this.#clock.nowMs())
  }

  #waitFor(id: string, wait: { readonly waitMs: number; readonly signal: AbortSignal }): Promise<JobView | null> {
    const row = this.#open().find(id)
    const stops = [wait.signal, this.#closing.signal]
    if (row === null || isFinished(row) || wait.waitMs <= 0 || stops.some((stop) => stop.aborted))
      return Promise.resolve(viewOrNull(row))
    return new Promise((resolve) => {
      const finish = (view: JobView): void => {
        cancelTimer()
        stopListening()
        stopAborting()
        resolve(view)
      }
      const giveUp = (): void => finish(toView(row))
      const stopListening = this.#store.wakeups.onFinished(id, finish)
      const cancelTimer = this.#clock.after(wait.waitMs, giveUp)
      const stopAborting = onAbort(stops, giveUp)
    })
  }

  /** The store, if this engine is still open. */
  #open(): MemoryStore {
    if (this.#closing.signal.aborted) throw new ClosedError('the memory engine')
    this.#store.clock.follow(this.#clock)
    return this.#store
  }
}

function viewOrNull(row: JobRow | null): JobView | null {
  return row === null ? null : toView(row)
}
