import { ClosedError, EngineError } from '../../errors.ts'
import { systemClock } from '../../time/clock.ts'
import { type Connection, isInTransaction } from './database.ts'
import { isBusy, toEngineError } from './faults.ts'
import { foldLongLog, shareLog } from './fold-log.ts'
import { LockPauses } from './lock-pauses.ts'

interface Operation {
  readonly name: string
  readonly sinceMs: number
  /** Whether it is acknowledged only when it is on the disk. */
  readonly isDurable: boolean
  /** While others use the file it may wait for a while. */
  readonly isPatient: boolean
  /** It failed together with others, so it is retried in its own transaction. */
  isAlone: boolean
  readonly statement: (() => unknown) | null
  run(isAlone: boolean): unknown
  resolve(value: unknown): void
  reject(error: unknown): void
}

interface Done {
  readonly operation: Operation
  readonly value: unknown
}

/** How long a call waits for the write lock of another process before it gives up with ERR_STORAGE_BUSY. */
const BUSY_MS_MAX = 30_000
/** A claim or a settle that has waited longer than this rests no more (see LockPauses). */
const PATIENCE_MS = 250
/** Claims shrink after a longer transaction and grow again after one of less than half. */
const LONG_MS = 8
const CLAIM_MIN = 32
const CLAIM_MAX = 512
/** Where processes compete for the lock, each of them takes turns with the processor too, so a transaction lasts longer. */
const CLAIM_SHARED_MAX = 128
const CLAIM_STEP = 16
/** After this time a transaction ends so that the event loop can turn. The rest goes into the next one. */
const SLICE_MS = 6
/** After a transaction of this length the event loop turns before its calls are acknowledged. */
const PAUSE_MS = 2

/** Thrown by a batch that met a rare case: roll back and run each of its calls again in its own transaction. */
export class RetryIndividually extends Error {}

/** Checks what must hold before anything is written. */
interface TransactionWatch {
  /** The same for a single statement: false if `begin` has something to write. */
  allowsStatement(): boolean
  /** First in every transaction. */
  begin(): void
  committed(): void
}

interface WriterParts {
  /** Syncs commits to the disk, where SQLite does not do so in the commit. */
  readonly sync: (() => Promise<void>) | null
  readonly watch?: TransactionWatch
  readonly random?: () => number
}

/**
 * The only path by which this process writes. All calls made in one turn of the event loop share one transaction (group
 * commit): a settle and the claim that follows it cost one fsync, and so do a hundred concurrent enqueues. A call that is
 * alone and needs a single statement runs without BEGIN and COMMIT, and one that its caller makes next does not wait for the
 * end of the turn.
 *
 * States: idle → gathering (setImmediate pending) → locking (BEGIN IMMEDIATE, retried without blocking while another
 * process holds the lock; new calls keep joining) → running → committed → idle. If a call throws, the transaction is
 * rolled back and each of its calls runs again in its own transaction, so only the faulty one fails. Savepoints would do
 * that too, but they make SQLite copy every page before changing it. If a commit fails, every call of the transaction
 * rejects: none happened. Waiting for the lock uses real time, also under an injected clock.
 */
export class Writer {
  readonly #connection: Connection
  readonly #sync: (() => Promise<void>) | null
  readonly #watch: TransactionWatch | null
  readonly #pauses: LockPauses
  #queue: Operation[] = []
  #gathering = false
  #closed = false
  #idle: Promise<void> = Promise.resolve()
  #synced: Promise<void> = Promise.resolve()
  #claimMax = CLAIM_MAX
  /** Whether it has ever met the lock of another. */
  #isShared = false

  constructor(connection: Connection, { sync, watch, random = Math.random }: WriterParts) {
    this.#connection = connection
    this.#sync = sync
    this.#watch = watch ?? null
    this.#pauses = new LockPauses(random)
  }

  /**
   * Runs `run` inside the next transaction. It must be synchronous, use only this connection, and may run again after a
   * rollback. `isAlone`: it has the transaction to itself. A `volatile` call is acknowledged without waiting for the disk:
   * a power cut may undo it, a process crash cannot. `statement` does the same as `run` in one statement, or answers null
   * having changed nothing. `isPatient`: others may go first, because they do the same work.
   */
  run<T>(
    name: string,
    run: (isAlone: boolean) => T,
    durability: 'durable' | 'volatile' = 'durable',
    statement: (() => T | null) | null = null,
    isPatient = false,
  ): Promise<T> {
    if (this.#closed) return Promise.reject(new ClosedError('the SQLite engine'))
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({
        name,
        sinceMs: systemClock.monotonicMs(),
        isDurable: durability === 'durable',
        isPatient,
        isAlone: false,
        statement,
        run,
        resolve: resolve as (value: unknown) => void,
        reject,
      })
      if (!isPatient) this.#pauses.hurry()
      if (this.#gathering) return
      this.#gathering = true
      this.#idle = new Promise((done) => setImmediate(() => void this.#drain().then(done)))
    })
  }

  /**
   * How many jobs a claim should take at most. It adapts to how long transactions take, because a transaction pauses the
   * event loop: ten busy processes on two cores need smaller ones than one alone.
   */
  get claimMax(): number {
    return this.#claimMax
  }

  #adapt(tookMs: number): void {
    if (tookMs > LONG_MS) this.#claimMax = Math.max(CLAIM_MIN, Math.floor(this.#claimMax * 0.75))
    else if (tookMs < LONG_MS / 2) this.#claimMax = Math.min(CLAIM_MAX, this.#claimMax + CLAIM_STEP)
  }

  /** Refuses new calls and resolves when earlier ones are done. */
  async close(): Promise<void> {
    this.#closed = true
    this.#pauses.hurry()
    await this.#idle
    await this.#synced
  }

  async #drain(): Promise<void> {
    let turnedAtMs = systemClock.monotonicMs()
    while (this.#queue.length > 0) {
      if (this.#runStatement()) {
        // Callers that continue because of it, and call again, have done so by the next tick.
        await new Promise<void>((resolve) => process.nextTick(resolve))
        const isPrompt = this.#queue.every(({ statement }) => statement !== null)
        if (isPrompt && systemClock.monotonicMs() - turnedAtMs < SLICE_MS) continue
      } else if (await this.#lock()) await this.#transact()
      // Between two transactions the event loop turns, so that handlers and timers are never starved.
      if (this.#queue.length > 0) await new Promise<void>((resolve) => setImmediate(resolve))
      turnedAtMs = systemClock.monotonicMs()
    }
    this.#gathering = false
  }

  /** False if it takes a transaction, which then also reports what is wrong. */
  #runStatement(): boolean {
    const [operation] = this.#queue
    if (operation === undefined || operation.statement === null || operation.isAlone || this.#queue.length > 1)
      return false
    try {
      // On a handle of the user's own it would become part of their transaction.
      if (isInTransaction(this.#connection.handle) || this.#watch?.allowsStatement() === false) return false
      const value = operation.statement()
      if (value === null) return false
      this.#queue.length = 0
      this.#acknowledge([{ operation, value }])
      return true
    } catch {
      return false
    }
  }

  /** True once BEGIN IMMEDIATE has succeeded. Calls that have waited too long are rejected one by one. */
  async #lock(): Promise<boolean> {
    this.#pauses.begin()
    while (this.#queue.length > 0) {
      try {
        this.#connection.prepare('BEGIN IMMEDIATE').run()
        return true
      } catch (error) {
        if (!isBusy(error)) {
          this.#rejectAll(this.#queue, toEngineError(error, 'starting a transaction'))
          return false
        }
        this.#rejectOverdue(error)
        if (!this.#isShared) shareLog(this.#connection)
        this.#isShared = true
        this.#claimMax = Math.min(this.#claimMax, CLAIM_SHARED_MAX)
        await this.#pauses.next(this.#mayRest())
      }
    }
    return false
  }

  #mayRest(): boolean {
    const fromMs = systemClock.monotonicMs() - PATIENCE_MS
    return !this.#closed && this.#queue.every(({ isPatient, sinceMs }) => isPatient && sinceMs > fromMs)
  }

  async #transact(): Promise<void> {
    const done: Done[] = []
    const startedAtMs = systemClock.monotonicMs()
    try {
      this.#watch?.begin()
    } catch (error) {
      this.#rollback()
      this.#rejectAll(this.#queue, toEngineError(error, 'starting a transaction'))
      return
    }
    for (let operation = this.#queue.shift(); operation !== undefined; operation = this.#queue.shift()) {
      try {
        done.push({ operation, value: operation.run(operation.isAlone) })
      } catch (error) {
        this.#rollback()
        this.#separate([...done.map((entry) => entry.operation), operation], error)
        return
      }
      if (operation.isAlone || this.#queue[0]?.isAlone === true || systemClock.monotonicMs() - startedAtMs > SLICE_MS)
        break
    }
    try {
      this.#connection.prepare('COMMIT').run()
    } catch (error) {
      this.#rollback()
      for (const { operation } of done) operation.reject(toEngineError(error, 'committing'))
      return
    }
    this.#watch?.committed()
    const tookMs = systemClock.monotonicMs() - startedAtMs
    this.#adapt(tookMs)
    if (this.#isShared) foldLongLog(this.#connection)
    // Handlers start when their claim is acknowledged: a pause of their own, not the rest of a long one.
    if (tookMs > PAUSE_MS) await new Promise<void>((resolve) => setImmediate(resolve))
    this.#acknowledge(done)
  }

  /** The next transaction does not wait for this. */
  #acknowledge(done: readonly Done[]): void {
    const durable = this.#sync === null ? [] : done.filter((entry) => entry.operation.isDurable)
    for (const entry of done) if (!durable.includes(entry)) entry.operation.resolve(entry.value)
    if (this.#sync === null || durable.length === 0) return
    this.#synced = this.#sync().then(
      () => {
        for (const { operation, value } of durable) operation.resolve(value)
      },
      (error) => {
        for (const { operation } of durable) operation.reject(toEngineError(error, `syncing after ${operation.name}`))
      },
    )
  }

  /** A call that failed alone is rejected. Calls that failed together are retried individually, in their order. */
  #separate(operations: readonly Operation[], error: unknown): void {
    const [first] = operations
    if (first?.isAlone === true) {
      first.reject(toEngineError(error, first.name))
      return
    }
    for (const operation of operations) operation.isAlone = true
    this.#queue.unshift(...operations)
  }

  #rollback(): void {
    try {
      if (isInTransaction(this.#connection.handle)) this.#connection.exec('ROLLBACK')
    } catch {
      // The transaction is gone already, perhaps with its handle.
    }
  }

  #rejectAll(operations: readonly Operation[], error: unknown): void {
    const rejected = [...operations]
    this.#queue = this.#queue.filter((operation) => !rejected.includes(operation))
    for (const operation of rejected) operation.reject(error)
  }

  #rejectOverdue(error: unknown): void {
    const nowMs = systemClock.monotonicMs()
    const overdue = this.#queue.filter((operation) => nowMs - operation.sinceMs > BUSY_MS_MAX)
    const busy = new EngineError(
      'ERR_STORAGE_BUSY',
      `SQLite: the write lock was held by others for ${BUSY_MS_MAX} ms; end the long transaction and try again`,
      { cause: error },
    )
    if (overdue.length > 0) this.#rejectAll(overdue, busy)
  }
}
