import type { TypeTally } from '../engine/history/tally.ts'
import type { Indexed } from '../engine/indexed-set.ts'
import type { RateLimit } from '../engine/limits.ts'
import type { Lease, Outcome } from '../engine/outcome.ts'
import { ResultError } from '../errors.ts'
import type { Events, JobFacts } from '../events.ts'
import type { AnyJob, Handler, Hooks, RunningJob } from '../job/definition.ts'
import { plainJob } from '../job/job.ts'
import { definitionFor } from '../job/named-jobs.ts'
import type { SharedSlots } from '../job/slots.ts'
import type { SharedLease } from './shared-leases.ts'

/** A definition that this worker runs, with its counters. */
export interface WorkedType {
  readonly definition: AnyJob
  readonly run: Handler<unknown, unknown>
  /** The limits that hold now: the definition's, unless an operator has set others. */
  concurrency: number | null
  limit: RateLimit | null
  slots: SharedSlots | null
  running: number
  /** When its last attempt ended, on the monotonic clock. */
  endedAtMs: number | null
  /** Attempts that ended, but for those that were given back. */
  completed: number
  failed: number
  /** For the history. Null where the store keeps none. */
  readonly tally: TypeTally | null
}

/**
 * waiting: claimed, handler not called yet. running: handler called, no outcome yet. settling: the outcome is decided and
 * on its way to the engine. over: settled, lost or given up. A handler that ends after `running` is late: its answer is
 * ignored.
 */
type Phase = 'waiting' | 'running' | 'settling' | 'over'

/** One start of one job, from the claim until the engine has accepted or refused its outcome. */
export class ActiveJob implements Indexed, SharedLease {
  readonly handle: number
  readonly lease: Lease
  readonly type: WorkedType
  /** That of its name, where its type has one. */
  readonly definition: AnyJob
  readonly heldAtMs: number
  phase: Phase = 'waiting'
  setIndex = -1
  slot: SharedLease['slot'] = null
  isStarted = false
  startedAtMs = 0
  /** On the monotonic clock. Set from `settling` on, if the handler ran. */
  endedAtMs = 0
  durationMs = 0
  outcome: Outcome | null = null
  /** What the handler returned or threw. Hooks receive it once the engine has accepted the outcome. */
  answer: unknown = undefined
  #abort: AbortController | null = null
  #reason: Error | null = null
  #running: RunningJob | null = null
  #facts: JobFacts | null = null
  #renewedAtMs: number | null = null
  #isWithoutText = false

  constructor(handle: number, lease: Lease, type: WorkedType, heldAtMs: number) {
    this.handle = handle
    this.lease = lease
    this.type = type
    this.definition = definitionFor(type.definition, lease.job.options?.name)
    this.heldAtMs = heldAtMs
  }

  /** For the worker's heartbeats, and the history. */
  countEnd(kind: 'complete' | 'retry' | 'dead'): void {
    const { type, lease, startedAtMs, endedAtMs } = this
    type.endedAtMs = endedAtMs
    if (kind === 'complete') type.completed += 1
    else type.failed += 1
    type.tally?.add(kind, startedAtMs, endedAtMs, lease.attempt === 1 ? lease.job.runAtMs : null)
  }

  /** Whether the store has refused the text of its outcome. */
  get isWithoutText(): boolean {
    return this.#isWithoutText
  }

  /** Replaces the outcome with one without text. If a completion becomes a dead letter, hooks receive the error. */
  dropText(withoutText: (outcome: Outcome) => Outcome): void {
    const { outcome } = this
    if (outcome === null) return
    this.#isWithoutText = true
    const bare = withoutText(outcome)
    this.outcome = bare
    if (outcome.kind === 'complete' && bare.kind === 'dead') {
      this.answer = new ResultError('ERR_STORAGE_REFUSED', bare.error.message)
    }
  }

  get leaseMs(): number {
    return this.type.definition.leaseMs
  }

  get timeoutMs(): number {
    return this.lease.job.options?.timeoutMs ?? this.definition.timeoutMs
  }

  /** On the monotonic clock. Set from `running` on. */
  get deadlineMs(): number {
    return this.startedAtMs + this.timeoutMs
  }

  get renewedAtMs(): number {
    return this.#renewedAtMs ?? this.heldAtMs
  }

  set renewedAtMs(atMs: number) {
    this.#renewedAtMs = atMs
  }

  /** Created on first use: most short handlers never read their signal, and a controller costs a microsecond. */
  get signal(): AbortSignal {
    if (this.#abort === null) {
      this.#abort = new AbortController()
      if (this.#reason !== null) this.#abort.abort(this.#reason)
    }
    return this.#abort.signal
  }

  /** Why the signal was aborted, or null. The first reason wins. */
  get abortReason(): Error | null {
    return this.#reason
  }

  abort(reason: Error): void {
    if (this.#reason !== null) return
    this.#reason = reason
    this.#abort?.abort(reason)
  }

  get running(): RunningJob {
    this.#running ??= describe(this.lease)
    return this.#running
  }

  /** The job for events, without its payload. Created on first use and shared by all events of this start. */
  get facts(): JobFacts {
    this.#facts ??= factsOf(this.lease, this.type.definition.type)
    return this.#facts
  }
}

function describe({ job, attempt, token }: Lease): RunningJob {
  const { id, type, attempts, priority, key, latestKey, tenant, createdAtMs } = job
  const name = job.options?.name ?? type
  return Object.freeze({ id, type, name, attempt, attempts, priority, key, latestKey, tenant, createdAtMs, token })
}

function factsOf({ job }: Lease, type: string): JobFacts {
  const { id, priority, attempts, tenant, runAtMs, createdAtMs, options } = job
  return { id, type, priority, attempts, tenant, runAtMs, createdAtMs, options }
}

/**
 * Calls a hook of a job. Hooks only observe: they are not awaited, and an error, thrown or rejected, becomes a `hook.error`
 * event.
 */
export function callHook<Name extends keyof Hooks>(
  events: Events,
  active: ActiveJob,
  name: Name,
  call: (hooks: Hooks, active: ActiveJob) => unknown,
): void {
  // Most jobs have none, and must not pay for the rest.
  if (active.definition.hooks[name] !== undefined) callGivenHook(events, active, name, call)
}

function callGivenHook(
  events: Events,
  active: ActiveJob,
  name: keyof Hooks,
  call: (hooks: Hooks, active: ActiveJob) => unknown,
): void {
  const report = (error: unknown): void => {
    events.emit('hook.error', { job: active.facts, hook: name, error })
  }
  try {
    const answer = call(active.definition.hooks, active)
    if (answer instanceof Promise) answer.catch(report)
  } catch (error) {
    report(error)
  }
}

/** Shared by all jobs, so that no closure is allocated per job. */
export const HOOK_CALLS = Object.freeze({
  onStart: (hooks: Hooks, active: ActiveJob) => hooks.onStart?.(active.running, plainJob(active.lease.job)),
  onComplete: (hooks: Hooks, active: ActiveJob) => hooks.onComplete?.(active.running, active.answer),
  onFailed: (hooks: Hooks, active: ActiveJob) =>
    hooks.onFailed?.(active.running, active.answer, active.outcome?.kind === 'dead'),
})
