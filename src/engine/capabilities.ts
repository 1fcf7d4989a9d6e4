/**
 * What an engine can do, as frozen data: the client and worker check jobs against it at the door, the CLI prints it
 * and the conformance suite reads it. Every value has a consequence a user can plan with.
 */
export interface Capabilities {
  /** What acknowledged jobs outlive. */
  readonly survives: 'nothing' | 'process-crash' | 'node-loss'
  /** `watermark`: finished work above the watermark may run again after a crash. */
  readonly settle: 'immediate' | 'watermark'
  /** `in-process`: a crash forgets how often a job failed. */
  readonly attempts: 'stored' | 'in-process'
  /** `reaper`: someone must claim with `from: 'expired'`. `engine`: expired leases return by themselves. */
  readonly recovery: 'reaper' | 'engine' | 'none'
  /** How long after the lease ran out a dead holder's job is claimable again at most, with a running keeper. */
  readonly recoveryMaxMs: number | null
  /** 0: cannot delay. */
  readonly enqueueDelayMaxMs: number
  readonly retryDelayMaxMs: number
  /** `priority`: priority first, then due time, then arrival. */
  readonly order: 'none' | 'fifo' | 'per-key' | 'priority'
  /** What an idempotency key does. */
  readonly keys: 'refused' | 'partition' | 'unique-live'
  /** Whether a latest key supersedes older jobs. */
  readonly latest: boolean
  /** Enqueuing the same id twice stores one job. */
  readonly idempotentEnqueue: boolean
  /** A batch is stored whole or not at all. */
  readonly enqueueAtomic: boolean
  /** `enqueue` can join a transaction of the user's own. */
  readonly transactionalEnqueue: boolean
  /** `shared`: a type's rate limit holds over all workers of all processes. */
  readonly limits: 'refused' | 'shared'
  /** `append-only`: listed. `requeue`: also put back, discarded and removed, with an audit entry for each act. */
  readonly deadLetters: 'none' | 'append-only' | 'requeue'
  /** Jobs can be found, listed and waited for. */
  readonly inspection: boolean
  /** A job can be cancelled, also while another process runs it. */
  readonly cancellation: boolean
  /** A job can wait for others (`after`), and hears of their end in the same step. */
  readonly dependencies: boolean
  /** Schedules are stored, and a tick is enqueued together with the record that it was. */
  readonly schedules: boolean
  /** One keeper at a time can hold an office over all processes. */
  readonly leadership: boolean
  /** Finished jobs can be removed by age, by number and by the space that they take. */
  readonly retention: boolean
  /** Workers say in the engine's own store that they live and what they run, so that every process sees them. */
  readonly presence: boolean
  /** Single types can be held back, over all workers of all processes. */
  readonly pausing: boolean
  /** The engine can look at its own store and say what is wrong with it. */
  readonly diagnosis: boolean
}
