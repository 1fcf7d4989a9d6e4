import type { Consumer } from '../engine/engine.ts'
import type { Lease, LostReason, Outcome } from '../engine/outcome.ts'
import { isMillraceError, JobTimeoutError, NonRetryable } from '../errors.ts'
import type { Predecessors } from '../job/job.ts'
import { keepOf } from '../job/keep.ts'
import { decodePayload, encodeProgress, encodeResult, readPayload } from '../job/payload.ts'
import { decide } from '../job/policy.ts'
import type { Predecessor, Turn } from '../job/predecessors.ts'
import { type ContextParts, HandlerContext } from './context.ts'
import { JobScope, runAsCurrent } from './current.ts'
import type { HeldJob } from './held-job.ts'
import { CALLS, callHook } from './hooks.ts'
import type { WorkerParts } from './options.ts'
import { NOBODY, NOT_YET, turnOf } from './turns.ts'

export interface ExecutionParts extends WorkerParts {
  readonly worker: string
  readonly consumer: Consumer
  /** The outcome is decided and stands in `held`; the handler's slot is free from here on. */
  onDecided(held: HeldJob): void
  onLost(held: HeldJob, reason: LostReason): void
}

/** Why a stopping worker gives a job back. */
export const SHUTDOWN: Outcome = Object.freeze({ kind: 'release', delayMs: 0, reason: 'shutdown' })

/** One pipeline for every start: decode, run, and whatever happens becomes an outcome. */
export class Execution {
  readonly #parts: ExecutionParts
  readonly #contextParts: ContextParts
  readonly #scope = new JobScope()

  constructor(parts: ExecutionParts) {
    this.#parts = parts
    const report = (held: HeldJob, value: unknown): Promise<boolean> => this.#report(held, value)
    this.#contextParts = { log: parts.log, worker: parts.worker, report }
  }

  get #tracer() {
    return this.#parts.tracing?.tracer ?? null
  }

  /** Never throws. The outcome comes by `onDecided`. */
  start(held: HeldJob): void {
    held.phase = 'running'
    held.isStarted = true
    const { events, worker } = this.#parts
    if (events.hears('job.started')) {
      events.emit('job.started', { job: held.facts, attempt: held.lease.attempt, worker })
    }
    callHook(events, held, 'onStart', CALLS.onStart)
    if (this.#tracer === null) this.#run(held)
    else this.#tracer.run({ job: held.lease.job, attempt: held.lease.attempt, worker }, () => this.#run(held))
  }

  /** The job's time is over. Its slot is free at once, even if the handler goes on. */
  timeOut(held: HeldJob): void {
    if (held.phase !== 'running') return
    const error = new JobTimeoutError(held.lease.job.type, held.timeoutMs)
    this.#fail(held, error)
    held.abort(error)
  }

  /** Gives a job back that has not started, or whose handler did not heed a stopping worker. */
  release(held: HeldJob, outcome: Outcome): void {
    if (held.phase !== 'waiting' && held.phase !== 'running') return
    this.#decide(held, outcome)
  }

  /** What need not be waited for is not: a wait is a promise and a turn of the microtask queue, and most jobs are short. */
  #run(held: HeldJob): void {
    const { job } = held.lease
    const { definition } = held.type
    if (job.after !== null || definition.schema !== null || job.payloadVersion !== definition.version) {
      void this.#prepareAndCall(held)
      return
    }
    let payload: unknown
    try {
      checkStart(held.lease)
      payload = readPayload(definition, job.payload, job.payloadVersion)
    } catch (error) {
      this.#fail(held, error)
      return
    }
    this.#call(held, payload, NOBODY)
  }

  async #prepareAndCall(held: HeldJob): Promise<void> {
    const { job } = held.lease
    let payload: unknown
    let after = NOBODY
    try {
      checkStart(held.lease)
      const turn = job.after === null ? null : await this.#turn(job.after)
      if (turn?.kind === 'die') throw turn.error
      if (turn?.kind === 'wait') {
        this.release(held, NOT_YET)
        return
      }
      after = turn?.after ?? NOBODY
      payload = await decodePayload(held.type.definition, job.payload, job.payloadVersion)
    } catch (error) {
      this.#threw(held, error)
      return
    }
    if (held.phase === 'running') this.#call(held, payload, after)
  }

  #call(held: HeldJob, payload: unknown, after: readonly Predecessor[]): void {
    const { run } = held.type
    let answered: unknown
    try {
      const context = new HandlerContext(held, payload, after, this.#contextParts)
      // A tracer has made a context of its own, which the handler is to see.
      answered = this.#tracer === null ? this.#scope.run(context, run) : runAsCurrent(context, run)
      if (isThenable(answered)) {
        Promise.resolve(answered).then(
          (answer: unknown) => this.#answered(held, answer),
          (error: unknown) => this.#threw(held, error),
        )
        return
      }
    } catch (error) {
      this.#threw(held, error)
      return
    }
    this.#answered(held, answered)
  }

  #answered(held: HeldJob, answer: unknown): void {
    // After a timeout or a lost lease nobody waits for this any more.
    if (held.phase !== 'running') return
    held.answer = answer
    let outcome: Outcome
    try {
      outcome = this.#completion(held)
    } catch (error) {
      this.#fail(held, error)
      return
    }
    this.#decide(held, outcome)
  }

  #threw(held: HeldJob, error: unknown): void {
    if (held.phase === 'running') this.#fail(held, error)
  }

  #completion(held: HeldJob): Outcome {
    const { job } = held.lease
    const result = encodeResult(job.type, held.answer, this.#parts.resultBytesMax)
    const keep = keepOf(job.options?.keepCompleted, held.type.definition.keepCompleted)
    return { kind: 'complete', result, durationMs: this.#durationMs(held), ...keep }
  }

  /** A store that does not answer is not the job's fault: it comes back, and no attempt is used. */
  async #turn(after: Predecessors): Promise<Turn> {
    const { engine, events, worker } = this.#parts
    try {
      return await turnOf(engine, after)
    } catch (error) {
      events.emit('worker.error', { worker, during: 'predecessors', error })
      return { kind: 'wait' }
    }
  }

  #fail(held: HeldJob, error: unknown): void {
    held.answer = error
    this.#decide(held, isMillraceError(held.abortReason, 'ERR_STOPPING') ? SHUTDOWN : this.#verdict(held, error))
  }

  #verdict({ lease, type }: HeldJob, error: unknown): Outcome {
    const { job, attempt } = lease
    const backoff = job.options?.backoff ?? type.definition.backoff
    const keepDead = keepOf(job.options?.keepDead, type.definition.keepDead)
    const failed = { attempt, attempts: job.attempts, backoff, keepDead, error }
    return decide(failed, this.#parts.random, this.#parts.redactor)
  }

  #decide(held: HeldJob, outcome: Outcome): void {
    if (outcome.kind === 'complete') held.durationMs = outcome.durationMs
    else if (held.phase === 'running') held.durationMs = this.#durationMs(held)
    held.outcome = outcome
    held.phase = 'settling'
    this.#parts.onDecided(held)
  }

  #durationMs(held: HeldJob): number {
    held.endedAtMs = this.#parts.clock.monotonicMs()
    return Math.round(held.endedAtMs - held.startedAtMs)
  }

  /**
   * Not `async`: progress that is not JSON throws here, into the handler. A store that cannot take it at the moment is
   * reported and forgiven, because a handler that does not wait for its progress must not take the process down.
   */
  #report(held: HeldJob, value: unknown): Promise<boolean> {
    const text = encodeProgress(held.lease.job.type, value, this.#parts.resultBytesMax)
    if (held.phase !== 'running') return Promise.resolve(false)
    return this.#store(held, value, text)
  }

  async #store(held: HeldJob, value: unknown, text: string): Promise<boolean> {
    const { consumer, events, worker } = this.#parts
    const { lease } = held
    try {
      if (!(await consumer.report(lease, text))) {
        // The engine tells why only when asked to renew.
        const [lost] = await consumer.renew([lease], held.leaseMs)
        this.#parts.onLost(held, lost?.reason ?? 'expired')
        return false
      }
    } catch (error) {
      events.emit('worker.error', { worker, during: 'progress', error })
      return held.phase === 'running'
    }
    if (events.hears('job.progress')) {
      events.emit('job.progress', { job: held.facts, attempt: lease.attempt, worker, progress: value })
    }
    callHook(events, held, 'onProgress', (hooks) => hooks.onProgress?.(held.running, value))
    return true
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}

/** Throws where the job is not to be run. An engine that hands it out once too often must not make us run it (I5). */
function checkStart({ job, attempt, verdict }: Lease): void {
  if (verdict !== undefined) throw new NonRetryable(verdict)
  if (attempt <= job.attempts) return
  throw new NonRetryable(`this would be start ${attempt} of ${job.attempts}; replay the job to give it new attempts`)
}
