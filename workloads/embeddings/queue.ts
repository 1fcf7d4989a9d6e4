import { MemoryEngine, MemoryStore } from '../../src/engines/memory/index.ts'
import { ClosedError } from '../../src/errors.ts'
import { Events } from '../../src/events.ts'
import { redact } from '../../src/job/error-record.ts'
import type { NewJob } from '../../src/job/job.ts'
import { newJobId } from '../../src/job/job.ts'
import { PAYLOAD_BYTES_MAX_DEFAULT, PRIORITY_DEFAULT } from '../../src/job/options.ts'
import { backgroundClock, type Clock, systemClock } from '../../src/time/clock.ts'
import { startWorker, type Worker } from '../../src/worker/worker.ts'
import { DeadLetterQueue, toEmbeddingJob } from './dead-letters.ts'
import {
  checkInput,
  type EmbeddingInput,
  type EmbeddingJob,
  type EntryType,
  type EntryVersion,
  entryKey,
} from './entry.ts'
import { EMBED_TYPE, embeddingJob } from './generate.ts'
import { type EmbeddingQueueOptions, type ResolvedOptions, resolveOptions } from './options.ts'
import { type Rescanned, rescan } from './rescan.ts'

export interface QueueStats {
  /** Versions that wait for a free slot or for an older version of their entry. */
  readonly pending: number
  readonly inFlight: number
  readonly dlqSize: number
  /** Entries among the pending versions: always as many, because a newer version replaces the pending one. */
  readonly uniqueEntries: number
  /** Versions that failed and wait for their next run. */
  readonly retrying: number
  /** Dead letters that were dropped because of `dlqMax`. */
  readonly dlqDropped: number
}

/** The time that `close` may take beyond `drainMs` while the worker returns its jobs. */
const CLOSE_MS = 20_000
const BY_CALLER = { who: 'caller', reason: 'entry cancelled' }

/**
 * The latest-wins embedding queue: the memory engine with a latest key per entry, and one worker.
 *
 * @example
 * const queue = createEmbeddingQueue({ embed, store })
 * queue.enqueue({ entryType: 'guideline', entryId: '7', versionId: 'v2', content: 'Be brief.' })
 */
export function createEmbeddingQueue(options: EmbeddingQueueOptions): EmbeddingQueue {
  return new EmbeddingQueue(resolveOptions(options))
}

export class EmbeddingQueue {
  readonly #options: ResolvedOptions
  /** Of the engine and the worker. Unless given, what waits on it does not keep the process alive. */
  readonly #clock: Clock
  /** Nothing finished is kept, so an idle entry leaves nothing behind. */
  readonly #store = new MemoryStore({ finishedMax: 0 })
  readonly #engine: MemoryEngine
  readonly #dlq: DeadLetterQueue
  readonly #events: Events
  readonly #worker: Promise<Worker>
  readonly #whenIdle = new Set<() => void>()
  #seq = 0
  #closing: Promise<void> | null = null

  /** Use `createEmbeddingQueue`. */
  constructor(options: ResolvedOptions) {
    const { log } = options
    this.#options = options
    this.#clock = options.clock ?? backgroundClock
    this.#engine = new MemoryEngine({ clock: this.#clock, store: this.#store })
    this.#dlq = new DeadLetterQueue(this.#store, options.dlqMax)
    this.#events = new Events((error) => log.error('An embedding queue listener threw', { error: String(error) }))
    this.#events.on('job.settled', ({ job, outcome }) => this.#settled(job.id, outcome.kind))
    this.#events.on('lease.reaped', ({ job, outcome }) => this.#settled(job.id, outcome.kind))
    this.#events.on('worker.error', ({ during, error }) => {
      log.error('The embedding worker met an error', { during, error: String(error) })
    })
    this.#worker = this.#start()
  }

  #start(): Promise<Worker> {
    const { random, log, maxConcurrency, drainMs } = this.#options
    const job = embeddingJob(this.#options, {
      isLatest: ({ entryType, entryId, seq }) => seq === this.#latestSeq(entryKey(entryType, entryId)),
      onStored: ({ entryType, entryId, seq }) =>
        void this.#dlq.discard(entryKey(entryType, entryId), this.#clock.nowMs(), seq),
    })
    const parts = {
      engine: this.#engine,
      events: this.#events,
      clock: this.#clock,
      random,
      log,
      redactor: redact,
      resultBytesMax: PAYLOAD_BYTES_MAX_DEFAULT,
    }
    // The memory engine misses no wake-up, so polling once a minute is enough.
    return startWorker(parts, [job], { concurrency: maxConcurrency, drain: drainMs, poll: '1m' })
  }

  /**
   * Queues a version and returns at once; the embedding happens later, or never if a newer version comes first. A
   * version that is not newer than the newest one of its entry is dropped silently.
   *
   * Call it after your transaction has committed: what it embeds is not rolled back.
   */
  enqueue(input: EmbeddingInput): void {
    if (this.#closing !== null) throw new ClosedError('the embedding queue')
    checkInput(input)
    const seq = input.seq ?? this.#nextSeq()
    this.#seq = Math.max(this.#seq, seq)
    const { entryType, entryId, versionId, content } = input
    this.#add({ entryType, entryId, versionId, content, seq })
  }

  /** A store that outlives the process holds versions of earlier ones, which these must follow. */
  #nextSeq(): number {
    const isRemembered = this.#options.store.stored !== undefined
    return Math.max(this.#seq + 1, isRemembered ? this.#clock.nowMs() : 1)
  }

  /**
   * For the start of a process: enqueues those of these entries whose stored version is not the one given here, because the
   * last process ended before it was embedded. The store must have `stored`.
   */
  rescan(entries: Iterable<EmbeddingInput> | AsyncIterable<EmbeddingInput>): Promise<Rescanned> {
    return rescan(this.#options.store, entries, (input) => this.enqueue(input))
  }

  /** Enqueues after `commit` resolves, and not if it rejects. Resolves to whether it was enqueued. */
  async enqueueAfter(commit: Promise<unknown>, input: EmbeddingInput): Promise<boolean> {
    checkInput(input)
    const committed = await commit.then(
      () => true,
      () => false,
    )
    if (committed) this.enqueue(input)
    return committed
  }

  #add(version: EntryVersion): void {
    const nowMs = this.#clock.nowMs()
    const job: NewJob = {
      id: newJobId(nowMs),
      type: EMBED_TYPE,
      payload: JSON.stringify(version),
      payloadVersion: 1,
      priority: PRIORITY_DEFAULT,
      attempts: this.#options.maxRetries,
      delayMs: 0,
      runAtMs: null,
      key: null,
      latest: { key: entryKey(version.entryType, version.entryId), seq: version.seq },
      tenant: null,
      options: null,
      after: null,
    }
    this.#store.enqueue([job], nowMs)
  }

  getQueueStats(): QueueStats {
    const counts = this.#store.counts(this.#clock.nowMs())[EMBED_TYPE]
    const pending = counts?.ready ?? 0
    return {
      pending,
      inFlight: counts?.inProgress ?? 0,
      dlqSize: counts?.dead ?? 0,
      uniqueEntries: pending,
      retrying: counts?.delayed ?? 0,
      dlqDropped: this.#dlq.dropped,
    }
  }

  /** The newest version of an entry that is pending, retrying or in flight. */
  find(entryType: EntryType, entryId: string): EmbeddingJob | null {
    const latest = this.#store.latest(EMBED_TYPE, entryKey(entryType, entryId))
    const row = latest?.queued ?? latest?.running ?? null
    return row === null ? null : toEmbeddingJob(row)
  }

  /** Versions that failed for good, oldest first; of each entry the newest. */
  dlq(): readonly EmbeddingJob[] {
    return this.#dlq.list()
  }

  /**
   * Puts the entry's failed version back at the end of the queue, as a new version with all its runs. False if there is
   * none, or if a newer version is queued: the older content must not replace it.
   */
  retryDlq(key: string): boolean {
    const dead = this.#dlq.find(key)
    if (dead === null || dead.seq !== this.#latestSeq(key) || this.#closing !== null) return false
    this.#dlq.discard(key, this.#clock.nowMs())
    const { entryType, entryId, versionId, content } = dead
    this.#seq = this.#nextSeq()
    this.#add({ entryType, entryId, versionId, content, seq: this.#seq })
    return true
  }

  discardDlq(key: string): boolean {
    return this.#dlq.discard(key, this.#clock.nowMs())
  }

  /**
   * For a deleted entry: drops its pending, retrying, running and dead versions. A running embedding is aborted and writes
   * nothing. False if there was nothing to drop.
   */
  cancel(entryType: EntryType, entryId: string): boolean {
    const key = entryKey(entryType, entryId)
    const nowMs = this.#clock.nowMs()
    const latest = this.#store.latest(EMBED_TYPE, key)
    const live = [latest?.queued, latest?.running].filter((row) => row != null)
    for (const { job } of live) this.#store.cancel(job.id, BY_CALLER, nowMs)
    const discarded = this.#dlq.discard(key, nowMs)
    this.#tellIfIdle()
    return live.length > 0 || discarded
  }

  /** Waits until nothing is pending, in flight or retrying. False after `timeoutMs`. */
  async drain(timeoutMs: number): Promise<boolean> {
    if (this.#isIdle()) return true
    if (this.#closing !== null) return false
    // The caller waits, so this timer keeps the process alive, unlike the queue's own.
    const clock = this.#options.clock ?? systemClock
    await new Promise<void>((resolve) => {
      const finish = (): void => {
        this.#whenIdle.delete(finish)
        cancel()
        resolve()
      }
      const cancel = clock.after(timeoutMs, finish)
      this.#whenIdle.add(finish)
    })
    return this.#isIdle()
  }

  /** Waits for running embeddings, then aborts them. The log says what is lost. A second call returns the same promise. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    const { drainMs, log } = this.#options
    const clock = this.#options.clock ?? systemClock
    const endStay = clock.after(drainMs + CLOSE_MS, () => {})
    await (await this.#worker).stop('close')
    endStay()
    for (const finish of [...this.#whenIdle]) finish()
    const { pending, retrying, dlqSize } = this.getQueueStats()
    if (pending + retrying + dlqSize > 0) {
      log.warn('The embedding queue was closed with entries left', { pending, retrying, dlqSize })
    }
    await this.#engine.close()
  }

  #settled(id: string, outcome: 'complete' | 'retry' | 'dead' | 'release'): void {
    const row = outcome === 'dead' ? this.#store.find(id) : null
    // A failed version with a newer one waiting is superseded, not a dead letter.
    if (row !== null) {
      const dead = toEmbeddingJob(row)
      const { entryType, entryId, attempts, lastError } = dead
      this.#options.log.error('Embedding failed permanently', { entryType, entryId, attempts, error: lastError })
      this.#dlq.admit(dead, entryKey(entryType, entryId), this.#clock.nowMs())
    }
    this.#tellIfIdle()
  }

  /** 0 for an unknown entry. */
  #latestSeq(key: string): number {
    return this.#store.latest(EMBED_TYPE, key)?.seqMax ?? 0
  }

  #isIdle(): boolean {
    return this.#store.live(EMBED_TYPE) === 0
  }

  #tellIfIdle(): void {
    if (this.#whenIdle.size > 0 && this.#isIdle()) for (const finish of [...this.#whenIdle]) finish()
  }
}
