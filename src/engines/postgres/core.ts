import { Batcher } from '../../engine/batcher.ts'
import type { Receipt } from '../../engine/engine.ts'
import { LostClaims } from '../../engine/lost-claims.ts'
import { isExpired, type NotApplied } from '../../engine/outcome.ts'
import { clockStepped, StoreSteps } from '../../engine/store-steps.ts'
import { RemovedJobViews } from '../../engine/wait-until-finished.ts'
import { ClosedError } from '../../errors.ts'
import type { NewJob } from '../../job/job.ts'
import { backgroundClock, type Clock, watchEvery } from '../../time/clock.ts'
import { serverClock } from './clock.ts'
import type { Database } from './database.ts'
import { insertJobs, insertPlain } from './enqueue.ts'
import { isRefusedValue, toEngineError } from './faults.ts'
import { assertNotMigrated, SchemaWatch } from './migrate.ts'
import { PauseChanges } from './pause-changes.ts'
import { type Settling, settleLeases } from './settle.ts'
import { type LostClaim, takeBackClaims } from './take-back.ts'
import { type ListenConnection, type Notification, NotifyChannel, Wakeups } from './wakeups.ts'

/** Statements in flight of each kind: enough to keep the server busy, few enough to form large batches. */
const FLIGHTS_MAX = 2
/** Rows per statement. Larger ones are no faster and hold their locks longer. */
const ITEMS_MAX = 1_000
/** Callers that wait for a result want it soon, so they poll more often. */
const RESULT_POLL_MS = 100
/** The call that has the schema looked at goes first, and its connection is free again then. */
const AFTER_MS = 20

interface CoreConsumer {
  tellTrouble(error: unknown): void
  close(): Promise<void>
  /** False for reapers and the renewal thread, which tell nobody of a lease that was lost. */
  readonly tellsLost: boolean
  findLost(): void
  resetCursors(): void
}

interface CoreSettings {
  readonly database: Database
  readonly clock: Clock
  readonly pollMs: number
  readonly connect: (() => Promise<ListenConnection>) | null
}

/** What the engine, its consumers and its facets share. */
export class PostgresCore {
  readonly database: Database
  readonly clock: Clock
  readonly wakeups: Wakeups
  readonly results: Wakeups
  readonly channel: NotifyChannel
  readonly removedViews = new RemovedJobViews()
  readonly lostClaims = new LostClaims<LostClaim>((claims) => takeBackClaims(this, claims))
  readonly enqueues: Batcher<NewJob, Receipt>
  readonly settles: Batcher<Settling, NotApplied | null>
  readonly steps: StoreSteps
  readonly schema: SchemaWatch
  readonly pauses = new PauseChanges()
  readonly #consumers = new Set<CoreConsumer>()
  readonly #pollMs: number
  #stopWatching: (() => void) | null = null
  #closed = false

  constructor({ database, clock, pollMs, connect }: CoreSettings) {
    this.database = database
    this.clock = clock
    this.#pollMs = pollMs
    this.wakeups = new Wakeups(clock, pollMs)
    this.results = new Wakeups(clock, Math.min(RESULT_POLL_MS, pollMs))
    this.schema = new SchemaWatch(clock, () => this.#lookAtSchema())
    this.steps = new StoreSteps(clock, { ...serverClock(database), onStep: (stepMs) => this.#followed(stepMs) })
    const size = { flightsMax: FLIGHTS_MAX, itemsMax: ITEMS_MAX, isWorthRepeating: isRefusedValue }
    this.enqueues = new Batcher((jobs) => this.#insert(jobs, insertPlain), size)
    this.settles = new Batcher((settlings) => this.#settle(settlings), size)
    this.channel = new NotifyChannel({
      queries: database,
      names: database.names,
      connect,
      onNotification: (notification) => this.#receive(notification),
      onListening: () => this.#watch(),
    })
  }

  /** Turns errors of the driver into coded ones. */
  async call<Value>(during: string, run: (database: Database) => Promise<Value>): Promise<Value> {
    if (this.#closed) throw new ClosedError('this Postgres engine')
    try {
      return await run(this.database)
    } catch (error) {
      throw toEngineError(error, during)
    }
  }

  /** A job that one statement stores. */
  async insertOne(job: NewJob): Promise<readonly Receipt[]> {
    return this.#insert([job], insertJobs)
  }

  /** Other processes hear of the jobs as soon as they are stored: before this one does, where its connection allows it. */
  async #insert(jobs: readonly NewJob[], insert: typeof insertJobs): Promise<readonly Receipt[]> {
    const mayPrecede = jobs.some((job) => job.runAtMs !== null)
    let isAnnounced = false
    const announcing = this.database.followedBy(() => {
      const announcement = isAnnounced ? null : this.channel.announcement(mayPrecede ? 'earlier' : 'work')
      isAnnounced ||= announcement !== null
      return announcement
    })
    const receipts = await insert(announcing, jobs)
    if (isAnnounced) this.#wake(mayPrecede)
    else this.added({ mayPrecede })
    return receipts
  }

  #settle(settlings: readonly Settling[]): Promise<readonly (NotApplied | null)[]> {
    return this.steps.ask(
      () => this.#settleOnce(settlings),
      (lost) => {
        if (!lost.some(isExpired)) return null
        return async () => {
          const refused = settlings.filter((_, index) => isExpired(lost[index]))
          const again = [...(await this.#settleOnce(refused))]
          return lost.map((one) => (isExpired(one) ? (again.shift() ?? null) : one))
        }
      },
    )
  }

  async #settleOnce(settlings: readonly Settling[]): Promise<readonly (NotApplied | null)[]> {
    const { lost, freed } = await settleLeases(this.database, settlings, this.removedViews)
    if (freed) this.added({ mayPrecede: true })
    return lost
  }

  #followed(stepMs: number): void {
    const error = clockStepped('Postgres', stepMs)
    for (const consumer of this.#consumers) consumer.tellTrouble(error)
    this.added({ mayPrecede: true })
  }

  #receive(notification: Notification): void {
    if (notification === 'earlier') this.#resetCursors()
    if (notification === 'work' || notification === 'earlier') this.wakeups.notify()
    if (notification === 'lost') this.#compareLeases()
  }

  async #lookAtSchema(): Promise<void> {
    await backgroundClock.sleep(AFTER_MS)
    if (!this.#closed) await assertNotMigrated(this.database)
  }

  #compareLeases(): void {
    for (const consumer of this.#consumers) consumer.findLost()
  }

  /** This process added jobs. `mayPrecede`: they may come before those claimed last. */
  added({ mayPrecede }: { readonly mayPrecede: boolean }): void {
    this.#wake(mayPrecede)
    this.channel.announce(mayPrecede ? 'earlier' : 'work')
  }

  #wake(mayPrecede: boolean): void {
    if (mayPrecede) this.#resetCursors()
    this.wakeups.notify()
  }

  #resetCursors(): void {
    for (const consumer of this.#consumers) consumer.resetCursors()
  }

  /** This process changed a job's state: holders in all processes compare their leases. */
  changed(): void {
    this.added({ mayPrecede: true })
    this.results.notify()
    this.#compareLeases()
    void this.channel.send('lost')
  }

  remember(consumer: CoreConsumer): void {
    this.#consumers.add(consumer)
    // A process that only enqueues would be woken for every job, its own too, and has nothing to do then.
    if (consumer.tellsLost) this.channel.start()
    this.#watch()
  }

  forget(consumer: CoreConsumer): void {
    this.#consumers.delete(consumer)
    this.#watch()
  }

  /** Without notifications, lost leases are found by the poll. */
  #watch(): void {
    if ([...this.#consumers].some(({ tellsLost }) => tellsLost) && !this.channel.isListening) {
      this.#stopWatching ??= watchEvery(this.#pollMs, () => this.#compareLeases())
      return
    }
    this.#stopWatching?.()
    this.#stopWatching = null
  }

  /** Ends waiting claims, lets statements in flight finish, and refuses new ones. */
  async close(): Promise<void> {
    await Promise.all([...this.#consumers].map((consumer) => consumer.close()))
    this.wakeups.close()
    this.results.close()
    this.pauses.close()
    await Promise.all([this.enqueues.idle(), this.settles.idle(), this.lostClaims.close()])
    this.#closed = true
    await this.channel.close()
    await this.database.close()
  }
}
