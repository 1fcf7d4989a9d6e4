import type { Consumer } from '../engine/engine.ts'
import type { Lease, LostReason, NotApplied, Settlement, Unstorable } from '../engine/outcome.ts'
import { refusedText, withoutText } from '../engine/outcome.ts'
import type { Clock } from '../time/clock.ts'
import type { ActiveJob } from './active-job.ts'

const RETRY_MS_MIN = 50
const RETRY_MS_MAX = 2_000

interface SettleQueueParts {
  readonly clock: Clock
  readonly consumer: Pick<Consumer, 'settle'>
  onAccepted(active: ActiveJob): void
  onLost(active: ActiveJob, reason: LostReason): void
  /** The engine has answered for these, or they were given up. */
  onAnswered(batch: readonly ActiveJob[]): void
  onError(error: unknown): void
  /** Called in the same turn as `settle`, so that the engine can settle and claim in one transaction. */
  afterFlush(): void
}

/**
 * Sends outcomes to the engine: one call for all that were decided in one turn of the event loop. Claiming does not wait
 * for the answer. A rejected call means unknown: the same settlements are retried until the leases have surely run out,
 * and in halves, so that one outcome that the store cannot take does not hold up the others.
 */
export class SettleQueue {
  readonly #parts: SettleQueueParts
  #pending: ActiveJob[] = []
  #scheduled = false
  /** A list: V8 links the outgrown table of a set to the next, which kept ended batches alive (see ChurnMap). */
  #inFlight: (readonly ActiveJob[])[] = []
  #unanswered = 0
  #giveUpAtMs = Number.POSITIVE_INFINITY
  #onIdle: (() => void)[] = []
  /** Unanswered ones, by job. */
  readonly #retries = new Map<string, { readonly active: ActiveJob; answered(): void }>()

  constructor(parts: SettleQueueParts) {
    this.#parts = parts
  }

  /** Outcomes without an answer. */
  get unsettled(): number {
    return this.#pending.length + this.#unanswered
  }

  unanswered(): readonly ActiveJob[] {
    return [this.#pending, ...this.#inFlight].flat().filter(({ phase }) => phase !== 'over')
  }

  /**
   * Calls back when the retry of this job has its answer. False if none is unanswered. An engine may hand a job out again before
   * it answers the settle that put it back.
   */
  afterRetry(jobId: string, then: () => void): boolean {
    const retry = this.#retries.get(jobId)
    if (retry === undefined) return false
    const { answered } = retry
    retry.answered = () => {
      answered()
      then()
    }
    return true
  }

  /** Expects the outcome to be set. */
  add(active: ActiveJob): void {
    this.#pending.push(active)
    if (active.outcome?.kind === 'retry') this.#retries.set(active.lease.job.id, { active, answered: () => {} })
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => this.#flush())
  }

  /** Resolves when everything is answered or given up. Failed calls are not retried beyond `boundMs` from now. */
  async idle(boundMs: number): Promise<void> {
    this.#giveUpAtMs = this.#parts.clock.monotonicMs() + boundMs
    if (this.unsettled === 0) return
    await new Promise<void>((resolve) => this.#onIdle.push(resolve))
  }

  #flush(): void {
    const batch = this.#pending
    this.#pending = []
    this.#scheduled = false
    this.#unanswered += batch.length
    this.#inFlight.push(batch)
    void this.#settle(batch, this.#parts.clock.monotonicMs(), RETRY_MS_MIN).finally(() => {
      this.#inFlight = this.#inFlight.filter((other) => other !== batch)
    })
    this.#parts.afterFlush()
  }

  async #settle(batch: readonly ActiveJob[], firstTryMs: number, retryMs: number): Promise<void> {
    let refused: readonly NotApplied[]
    try {
      refused = await this.#parts.consumer.settle(batch.filter(isDecided))
    } catch (error) {
      this.#parts.onError(error)
      await this.#retry(batch, firstTryMs, retryMs)
      return
    }
    const unstorable = this.#answer(batch, refused)
    if (unstorable.length > 0) await this.#settleWithoutText(unstorable, firstTryMs, retryMs)
  }

  /** An outcome that is refused even without text is retried like any other failure. */
  async #settleWithoutText(batch: readonly ActiveJob[], firstTryMs: number, retryMs: number): Promise<void> {
    const again = batch.filter(({ isWithoutText }) => !isWithoutText)
    const hopeless = batch.filter(({ isWithoutText }) => isWithoutText)
    for (const active of again) active.dropText(withoutText)
    if (again.length > 0) await this.#settle(again, firstTryMs, retryMs)
    if (hopeless.length > 0) await this.#retry(hopeless, firstTryMs, retryMs)
  }

  async #retry(batch: readonly ActiveJob[], firstTryMs: number, retryMs: number): Promise<void> {
    const { clock } = this.#parts
    const againAtMs = clock.monotonicMs() + retryMs
    const isHopeless = (active: ActiveJob) => againAtMs >= firstTryMs + active.leaseMs || againAtMs >= this.#giveUpAtMs
    const hopeless = batch.filter(isHopeless)
    if (hopeless.length > 0) this.#forget(hopeless)
    const hopeful = batch.filter((active) => !hopeless.includes(active))
    if (hopeful.length === 0) return
    await clock.sleep(retryMs)
    const middle = Math.ceil(hopeful.length / 2)
    const nextMs = Math.min(retryMs * 2, RETRY_MS_MAX)
    const halves = [hopeful.slice(0, middle), hopeful.slice(middle)].filter((half) => half.length > 0)
    await Promise.all(halves.map((half) => this.#settle(half, firstTryMs, nextMs)))
  }

  /** Returns the jobs whose text was refused: their leases are still held. */
  #answer(batch: readonly ActiveJob[], refused: readonly NotApplied[]): readonly ActiveJob[] {
    const refusals = new Map(refused.map((refusal) => [fence(refusal.lease), refusal]))
    const unstorable: ActiveJob[] = []
    for (const active of batch) {
      const refusal = refusals.size === 0 ? undefined : refusals.get(fence(active.lease))
      if (refusal === undefined) this.#parts.onAccepted(active)
      else if (refusal.reason !== 'unstorable') this.#parts.onLost(active, refusal.reason)
      else {
        this.#reportUnstorable(active, refusal)
        unstorable.push(active)
      }
    }
    const answered = unstorable.length === 0 ? batch : batch.filter((active) => !unstorable.includes(active))
    if (answered.length > 0) this.#forget(answered)
    return unstorable
  }

  #reportUnstorable({ lease, outcome }: ActiveJob, { error }: Unstorable): void {
    if (outcome !== null) this.#parts.onError(refusedText(lease, outcome, error))
  }

  #forget(batch: readonly ActiveJob[]): void {
    this.#unanswered -= batch.length
    for (const active of batch) active.phase = 'over'
    this.#parts.onAnswered(batch)
    if (this.#retries.size > 0) this.#endRetries(batch)
    if (this.unsettled > 0) return
    for (const resolve of this.#onIdle.splice(0)) resolve()
  }

  #endRetries(batch: readonly ActiveJob[]): void {
    for (const active of batch) {
      const retry = this.#retries.get(active.lease.job.id)
      if (retry?.active !== active) continue
      this.#retries.delete(active.lease.job.id)
      retry.answered()
    }
  }
}

/** Two starts of one job can be in one batch, if the first lost its lease unnoticed. Only the token differs. */
function fence({ job, token }: Lease): string {
  return `${job.id}\n${token}`
}

/** A decided job is passed to the engine as it is, without a copy. */
function isDecided(active: ActiveJob): active is ActiveJob & Settlement {
  return active.outcome !== null
}
