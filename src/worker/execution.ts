import type { Consumer } from '../engine/engine.ts'
import type { LostReason, Outcome } from '../engine/outcome.ts'
import { JobTimeoutError, NonRetryable, StoppingError } from '../errors.ts'
import type { Predecessors } from '../job/job.ts'
import { keepOf } from '../job/keep.ts'
import { decodePayload, encodeProgress, encodeResult, readPayload } from '../job/payload.ts'
import { decide } from '../job/policy.ts'
import type { Turn } from '../job/predecessors.ts'
import { type ContextParts, HandlerContext } from './context.ts'
import { runAsCurrent } from './current.ts'
import type { HeldJob } from './held-job.ts'
import { callHook } from './hooks.ts'
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

  constructor(parts: ExecutionParts) {
    this.#parts = parts
    const report = (held: HeldJob, value: unknown): Promise<boolean> => this.#report(held, value)
    this.#contextParts = { log: parts.log, worker: parts.worker, report }
  }

  /** Never throws. The outcome comes by `onDecided`. */
  start(held: HeldJob, nowMs: number): void {
    held.phase = 'running'
    held.isStarted = true
    held.startedAtMs = nowMs
    const { events, worker } = this.#parts
    if (events.hears('job.started')) {
      events.emit('job.started', { job: held.facts, attempt: held.lease.attempt, worker })
    }
    callHook(events, held, 'onStart', (hooks) => hooks.onStart?.(held.running))
    const tracer = this.#parts.tracing?.tracer ?? null
    if (tracer === null) void this.#run(held)
    else tracer.run({ job: held.lease.job, attempt: held.lease.attempt, worker }, () => void this.#run(held))
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

  async #run(held: HeldJob): Promise<void> {
    let outcome: Outcome
    try {
      const { job, attempt, verdict } = held.lease
      if (verdict !== undefined) throw new NonRetryable(verdict)
      if (attempt > job.attempts) throw startedTooOften(attempt, job.attempts)
      const turn = job.after === null ? null : await this.#turn(job.after)
      if (turn?.kind === 'die') throw turn.error
      if (turn?.kind === 'wait') {
        this.release(held, NOT_YET)
        return
      }
      const { definition } = held.type
      const decode = definition.schema === null ? readPayload : decodePayload
      const payload = await decode(definition, job.payload, job.payloadVersion)
      if (held.phase !== 'running') return
      const answer = await runAsCurrent(
        new HandlerContext(held, payload, turn?.after ?? NOBODY, this.#contextParts),
        held.type.run,
      )
      if (held.phase !== 'running') return
      held.answer = answer
      const result = encodeResult(job.type, answer, this.#parts.resultBytesMax)
      const keep = keepOf(job.options?.keepCompleted, held.type.definition.keepCompleted)
      outcome = { kind: 'complete', result, durationMs: this.#durationMs(held), ...(keep !== null && { keep }) }
    } catch (error) {
      // After a timeout or a lost lease nobody waits for this any more.
      if (held.phase === 'running') this.#fail(held, error)
      return
    }
    this.#decide(held, outcome)
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
    this.#decide(held, held.abortReason instanceof StoppingError ? SHUTDOWN : this.#verdict(held, error))
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
    return Math.round(this.#parts.clock.monotonicMs() - held.startedAtMs)
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

/** An engine that hands a job out once too often must not make us run it (I5). */
function startedTooOften(attempt: number, attempts: number): NonRetryable {
  return new NonRetryable(`this would be start ${attempt} of ${attempts}; replay the job to give it new attempts`)
}
