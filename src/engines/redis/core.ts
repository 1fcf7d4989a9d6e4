import { Batcher } from '../../engine/batcher.ts'
import type { Receipt } from '../../engine/engine.ts'
import { LostClaims } from '../../engine/lost-claims.ts'
import { clockStepped, StoreSteps } from '../../engine/store-steps.ts'
import { RemovedJobViews } from '../../engine/wait-until-finished.ts'
import type { NewJob } from '../../job/job.ts'
import type { Clock } from '../../time/clock.ts'
import { redisClock } from './clock.ts'
import type { RedisConsumer } from './consumer.ts'
import type { RedisDatabase } from './database.ts'
import { storeJobs } from './enqueue.ts'
import { FinishWaits } from './finish-waits.ts'
import { type LostClaim, takeBackClaims } from './recovery.ts'

/** Redis runs one command at a time: a second batch on its way is enough to keep it busy. */
const FLIGHTS_MAX = 2
const ITEMS_MAX = 500

/** Shared by the engine, its consumers and its facets. */
export class RedisCore {
  readonly database: RedisDatabase
  readonly clock: Clock
  readonly pollMs: number
  readonly removedViews: RemovedJobViews
  readonly finishWaits: FinishWaits
  readonly lostClaims: LostClaims<LostClaim>
  readonly steps: StoreSteps
  readonly #enqueues: Batcher<NewJob, Receipt>
  readonly #consumers = new Set<RedisConsumer>()

  constructor(database: RedisDatabase, clock: Clock, pollMs: number, removedViews = new RemovedJobViews()) {
    this.removedViews = removedViews
    this.database = database
    this.clock = clock
    this.pollMs = pollMs
    this.steps = new StoreSteps(clock, { ...redisClock(database), onStep: (stepMs) => this.#followed(stepMs) })
    this.finishWaits = new FinishWaits(database, clock)
    this.lostClaims = new LostClaims((claims) => takeBackClaims(database, claims))
    this.#enqueues = new Batcher((jobs) => storeJobs(database, jobs), {
      flightsMax: FLIGHTS_MAX,
      itemsMax: ITEMS_MAX,
      isWorthRepeating: () => false,
    })
  }

  /** Calls of one turn share a script. Jobs with predecessors do not: an unknown one would fail the calls of others. */
  enqueue(jobs: readonly NewJob[]): Promise<readonly Receipt[]> {
    return jobs.every(({ after }) => after === null) ? this.#enqueues.add(jobs) : storeJobs(this.database, jobs)
  }

  #followed(stepMs: number): void {
    const error = clockStepped('Redis', stepMs)
    for (const consumer of this.#consumers) consumer.tellTrouble(error)
  }

  remember(consumer: RedisConsumer): void {
    this.#consumers.add(consumer)
  }

  forget(consumer: RedisConsumer): void {
    this.#consumers.delete(consumer)
  }

  /** Ends waiting claims, lets calls on their way finish, and refuses new ones. */
  async close(): Promise<void> {
    await Promise.all([...this.#consumers].map((consumer) => consumer.close()))
    await Promise.all([this.#enqueues.idle(), this.lostClaims.close()])
    this.finishWaits.close()
    this.database.close()
  }
}
