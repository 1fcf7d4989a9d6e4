/**
 * What an engine promises, as frozen data: the client and worker check jobs against it, and the conformance suite derives
 * its cases from it. Every value has a consequence a user can plan with. No flag repeats a facet: an engine can do what it
 * has the facet for.
 */
export interface Capabilities {
  /**
   * Within what batches are whole, keys unique, `after` and flows possible and the order kept: the whole store, or one type.
   * With `type` a batch of several types is whole for each type, and what would join two types is refused.
   */
  readonly scope: 'store' | 'type'
  /** What acknowledged jobs outlive. */
  readonly survives: 'nothing' | 'process-crash'
  /** `watermark`: finished work above the watermark may run again after a crash. */
  readonly settle: 'immediate' | 'watermark'
  /** `reaper`: someone must claim with `from: 'expired'`. `engine`: expired leases return by themselves. */
  readonly recovery: 'reaper' | 'engine'
  /** How long after the lease ran out a dead holder's job is claimable again at most, with a running keeper. */
  readonly recoveryMaxMs: number
  /** 0: cannot delay. */
  readonly enqueueDelayMaxMs: number
  readonly retryDelayMaxMs: number
  /**
   * `priority`: priority first, then in the order in which jobs became ready. `ageing-priority`: priority first, then due
   * time, then arrival, and jobs that wait gain ranks in a subscription with `ageingMs`.
   */
  readonly order: 'fifo' | 'per-key' | 'priority' | 'ageing-priority'
  /** What an idempotency key does. */
  readonly keys: 'refused' | 'partition' | 'unique-live'
  /** Whether a latest key supersedes older jobs. */
  readonly latest: boolean
  /** Enqueuing the same id twice stores one job, for as long as that is kept: one that was removed meanwhile is stored and run again. */
  readonly idempotentEnqueue: boolean
  /** A batch is stored whole or not at all. */
  readonly enqueueAtomic: boolean
  /** `enqueue` can join a transaction of the user's own. */
  readonly transactionalEnqueue: boolean
  /** `shared`: a type's rate limit holds over all workers of all processes. */
  readonly limits: 'refused' | 'shared'
  /** `shared`: `concurrency: { max }`, also for each tenant, holds over all workers of all processes. */
  readonly slots: 'refused' | 'shared'
  /** A job can wait for others (`after`), and hears of their end in the same step. */
  readonly dependencies: boolean
}
