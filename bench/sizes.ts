/** How much work a run does. The published figures are those of `STANDARD`. */
export interface Sizes {
  readonly jobs: number
  /** Jobs enqueued one by one. */
  readonly singles: number
  /** Jobs of a drain; a tenth as many again come before its clock starts. */
  readonly drained: number
  /** Drains of that many, one after another in one process; the rate is that of all of them together. */
  readonly drains: number
  readonly concurrency: number
  /** Jobs sent one by one to a worker in another process. */
  readonly pickups: number
  /** Claims that are timed at each size of the store. */
  readonly claims: number
  /** Jobs finished under a transaction that is held open. */
  readonly horizon: number
  /** Starts of every program in a round. */
  readonly starts: number
  /** Jobs waiting in a large store; as many again are scheduled for later, and as many finished. */
  readonly large: number
  /** All jobs of the largest store. */
  readonly millions: number
  /** Jobs of the mixture of real work that are waiting when the worker starts. */
  readonly mixed: number
  readonly idleMs: number
  readonly processes: number
  /** No delivery for so long means that the missing jobs are lost. */
  readonly stallMs: number
  readonly seed: number
}

/**
 * Sixty thousand jobs, because start-up weighs heavily on less: with twenty thousand, runs during
 * development gave 3.2 to 4.4 × plainjob for the drain, and 23 ms for the loop delay of ten processes.
 */
export const STANDARD: Sizes = Object.freeze({
  jobs: 60_000,
  singles: 10_000,
  drained: 60_000,
  drains: 1,
  concurrency: 50,
  pickups: 300,
  claims: 200,
  horizon: 120_000,
  starts: 12,
  large: 1_000_000,
  millions: 10_000_000,
  mixed: 1_500,
  idleMs: 10_000,
  processes: 10,
  stallMs: 10_000,
  seed: 7,
})

/**
 * Twenty thousand, because a server answers every peer that works job by job in milliseconds: with
 * sixty thousand a run would take the better part of an hour. Only the drain has as many: twenty thousand are over in a
 * second, for most of which V8 still compiles (Millrace on Postgres then took 33 to 42 µs of its process's time for a job,
 * and 14 to 16 when it drained 150 thousand).
 */
export const STANDARD_OF_SERVERS: Sizes = Object.freeze({ ...STANDARD, jobs: 20_000, singles: 2_000 })

/**
 * Two hundred thousand, because a log is read at hundreds of thousands a second: less would measure a fraction of one. Even
 * so a drain is over in 0.2 to 0.5 s, so that a moment in which the machine is slow decides it: three are taken together.
 */
export const STANDARD_OF_LOGS: Sizes = Object.freeze({
  ...STANDARD,
  ...{ jobs: 200_000, drained: 200_000, drains: 3, singles: 5_000 },
})

export const ROUNDS_STANDARD = 3
