import { inspectorOf } from '../engine/capability-checks.ts'
import type { Consumer, Engine } from '../engine/engine.ts'
import type { Lease, LostReason, Outcome } from '../engine/outcome.ts'
import { isMillraceError, JobTimeoutError, MillraceError, NonRetryable } from '../errors.ts'
import type { Predecessors } from '../job/job.ts'
import { keepOf } from '../job/keep.ts'
import { decodePayload, encodeProgress, encodeResult, readPayload } from '../job/payload.ts'
import { decide } from '../job/policy.ts'
import { type Predecessor, type Readiness, readinessOf } from '../job/predecessors.ts'
import { type ActiveJob, callHook, HOOK_CALLS } from './active-job.ts'
import { type ContextParts, HandlerContext, JobScope, runAsCurrent } from './context.ts'
import { LogBuffer } from './log-buffer.ts'
import type { ResolvedWorkerOptions, WorkerParts } from './options.ts'

interface ExecutionParts extends WorkerParts {
  readonly worker: string
  readonly consumer: Consumer
  readonly keepLogs: ResolvedWorkerOptions['keepLogs']
  /** The outcome is decided and set on `active`. The handler's slot is free now. */
  onDecided(active: ActiveJob): void
  onLost(active: ActiveJob, reason: LostReason): void
}

/** How a worker gives a job back. */
export const SHUTDOWN: Outcome = Object.freeze({ kind: 'release', delayMs: 0, reason: 'shutdown' })
export const NOT_STARTED: Outcome = Object.freeze({ kind: 'release', delayMs: 0, reason: 'not-started' })
export const PAUSED: Outcome = Object.freeze({ kind: 'release', delayMs: 0, reason: 'paused' })

/**
 * A class, because V8 counts how many objects of a literal survive: a few hundred that wait to be settled, and all later
 * ones are made among its old objects, which only a full collection frees.
 */
class Completion {
  readonly kind = 'complete'
  readonly result: string
  readonly durationMs: number

  constructor(result: string, durationMs: number) {
    this.result = result
    this.durationMs = durationMs
  }
}

/** The pipeline of every start: decode, run, decide the outcome. */
export class Execution {
  readonly #parts: ExecutionParts
  readonly #contextParts: ContextParts
  readonly #scope = new JobScope()

  constructor(parts: ExecutionParts) {
    this.#parts = parts
    const report = (active: ActiveJob, value: unknown): Promise<boolean> => this.#report(active, value)
    this.#contextParts = { log: parts.log, worker: parts.worker, kept: logBufferOf(parts), report }
  }

  /** Writes what handlers have said. */
  async close(): Promise<void> {
    await this.#contextParts.kept?.close()
  }

  get #tracer() {
    return this.#parts.tracing?.tracer ?? null
  }

  /** Never throws. The outcome is delivered by `onDecided`. */
  start(active: ActiveJob): void {
    active.phase = 'running'
    active.isStarted = true
    const { events, worker } = this.#parts
    if (events.hasListener('job.started')) {
      events.emit('job.started', { job: active.facts, attempt: active.lease.attempt, worker })
    }
    callHook(events, active, 'onStart', HOOK_CALLS.onStart)
    if (this.#tracer === null) this.#run(active)
    else this.#tracer.run({ job: active.lease.job, attempt: active.lease.attempt, worker }, () => this.#run(active))
  }

  /** The job's timeout has passed. The handler is told before another job starts in its slot, which is free at once. */
  timeOut(active: ActiveJob): void {
    if (active.phase !== 'running') return
    const error = new JobTimeoutError(active.lease.job.type, active.timeoutMs)
    active.abort(error)
    this.#fail(active, error)
  }

  /** Gives back a job that has not started, or whose handler ignored its aborted signal. */
  release(active: ActiveJob, outcome: Outcome): void {
    if (active.phase !== 'waiting' && active.phase !== 'running') return
    this.#decide(active, outcome)
  }

  /** Awaits only where it must: an await costs a promise and a microtask, and most jobs are short. */
  #run(active: ActiveJob): void {
    const { job, failure } = active.lease
    const { definition } = active
    if (failure !== undefined) {
      this.#decide(active, { kind: 'dead', error: failure, ...keepOf(job.options?.keepDead, definition.keepDead) })
      return
    }
    if (job.after !== null || definition.schema !== null || job.payloadVersion !== definition.version) {
      void this.#prepareAndCall(active)
      return
    }
    let payload: unknown
    try {
      checkStart(active.lease)
      payload = readPayload(definition, job.payload, job.payloadVersion)
    } catch (error) {
      this.#fail(active, error)
      return
    }
    this.#call(active, payload, NO_PREDECESSORS)
  }

  async #prepareAndCall(active: ActiveJob): Promise<void> {
    const { job } = active.lease
    let payload: unknown
    let after = NO_PREDECESSORS
    try {
      checkStart(active.lease)
      const turn = job.after === null ? null : await this.#turn(job.after)
      if (turn?.kind === 'die') throw turn.error
      if (turn?.kind === 'wait') {
        this.release(active, WAITS_FOR_PREDECESSORS)
        return
      }
      after = turn?.after ?? NO_PREDECESSORS
      payload = await decodePayload(active.definition, job.payload, job.payloadVersion)
    } catch (error) {
      this.#threw(active, error)
      return
    }
    if (active.phase === 'running') this.#call(active, payload, after)
  }

  #call(active: ActiveJob, payload: unknown, after: readonly Predecessor[]): void {
    const { run } = active.definition
    let answered: unknown
    try {
      const context = new HandlerContext(active, payload, after, this.#contextParts)
      // The tracer has entered its own async context, which the handler must see.
      answered = this.#tracer === null ? this.#scope.run(context, run) : runAsCurrent(context, run)
      if (isThenable(answered)) {
        Promise.resolve(answered).then(
          (answer: unknown) => this.#answered(active, answer),
          (error: unknown) => this.#threw(active, error),
        )
        return
      }
    } catch (error) {
      this.#threw(active, error)
      return
    }
    this.#answered(active, answered)
  }

  #answered(active: ActiveJob, answer: unknown): void {
    // Too late after a timeout or a lost lease.
    if (active.phase !== 'running') return
    active.answer = answer
    let outcome: Outcome
    try {
      outcome = this.#completion(active)
    } catch (error) {
      this.#fail(active, error)
      return
    }
    this.#decide(active, outcome)
  }

  #threw(active: ActiveJob, error: unknown): void {
    if (active.phase === 'running') this.#fail(active, error)
  }

  #completion(active: ActiveJob): Outcome {
    const { job } = active.lease
    const result = encodeResult(job.type, active.answer, this.#parts.resultBytesMax)
    const keep = keepOf(job.options?.keepCompleted, active.definition.keepCompleted)
    const completion = new Completion(result, this.#durationMs(active))
    return keep.keep === undefined ? completion : { ...completion, ...keep }
  }

  /** If the store does not answer, the job is released and no attempt is used. */
  async #turn(after: Predecessors): Promise<Readiness> {
    const { engine, events, worker } = this.#parts
    try {
      return await lookUpReadiness(engine, after)
    } catch (error) {
      events.emit('worker.error', { worker, during: 'predecessors', error })
      return { kind: 'wait' }
    }
  }

  #fail(active: ActiveJob, error: unknown): void {
    active.answer = error
    this.#decide(active, isMillraceError(active.abortReason, 'ERR_STOPPING') ? SHUTDOWN : this.#verdict(active, error))
  }

  #verdict({ lease, definition }: ActiveJob, error: unknown): Outcome {
    const { job, attempt } = lease
    const backoff = job.options?.backoff ?? definition.backoff
    const keepDead = keepOf(job.options?.keepDead, definition.keepDead)
    const failed = { attempt, attempts: job.attempts, backoff, keepDead, error }
    return decide(failed, this.#parts.random, this.#parts.redactor)
  }

  #decide(active: ActiveJob, outcome: Outcome): void {
    if (outcome.kind === 'complete') active.durationMs = outcome.durationMs
    else if (active.phase === 'running') active.durationMs = this.#durationMs(active)
    active.outcome = outcome
    active.phase = 'settling'
    this.#parts.onDecided(active)
  }

  #durationMs(active: ActiveJob): number {
    active.endedAtMs = this.#parts.clock.monotonicMs()
    return Math.round(active.endedAtMs - active.startedAtMs)
  }

  /**
   * Not `async`: progress that is not JSON throws synchronously, into the handler. A store that cannot take it now is
   * reported and ignored, because a handler that does not await its progress must not crash the process.
   */
  #report(active: ActiveJob, value: unknown): Promise<boolean> {
    const text = encodeProgress(active.lease.job.type, value, this.#parts.resultBytesMax)
    if (active.phase !== 'running') return Promise.resolve(false)
    return this.#store(active, value, text)
  }

  async #store(active: ActiveJob, value: unknown, text: string): Promise<boolean> {
    const { consumer, events, worker } = this.#parts
    const { lease } = active
    try {
      if (!(await consumer.report(lease, text))) {
        // Only `renew` answers why.
        const [lost] = await consumer.renew([lease], active.leaseMs)
        this.#parts.onLost(active, lost?.reason ?? 'expired')
        return false
      }
    } catch (error) {
      events.emit('worker.error', { worker, during: 'progress', error })
      return active.phase === 'running'
    }
    if (events.hasListener('job.progress')) {
      events.emit('job.progress', { job: active.facts, attempt: lease.attempt, worker, progress: value })
    }
    callHook(events, active, 'onProgress', (hooks) => hooks.onProgress?.(active.running, value))
    return true
  }
}

/** Null where the engine keeps no logs, or the worker shall not. */
function logBufferOf({ engine, keepLogs, events, clock, worker, redactor }: ExecutionParts): LogBuffer | null {
  if (engine.logs === undefined || keepLogs === null) return null
  const onError = (error: unknown): void => events.emit('worker.error', { worker, during: 'logs', error })
  return new LogBuffer({ clock, logs: engine.logs, worker, redactor, keep: keepLogs, onError })
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}

/**
 * Throws if the job must not run. An engine without a reaper, such as Kafka, hands out a job once too often when its last
 * start was never settled.
 */
function checkStart({ job, attempt, verdict }: Lease): void {
  if (verdict !== undefined) throw new NonRetryable(verdict)
  // The first start is always allowed; an engine need not read for it how many there may be.
  if (attempt <= 1 || attempt <= job.attempts) return
  throw new MillraceError(
    'ERR_LEASE_EXPIRED',
    `start ${job.attempts} of ${job.attempts} was not settled: its worker died, was killed or stalled`,
  )
}

/** Engines hold such a job back themselves. The delay is for an engine that does not. */
const WAITS_FOR_PREDECESSORS: Outcome = Object.freeze({
  kind: 'release',
  delayMs: 1_000,
  reason: 'predecessors',
})

const NO_PREDECESSORS: readonly Predecessor[] = Object.freeze([])

/** Looks up the jobs that a claimed one comes after. */
async function lookUpReadiness(engine: Engine, after: Predecessors): Promise<Readiness> {
  return readinessOf(after, await inspectorOf(engine).find(after.ids))
}
