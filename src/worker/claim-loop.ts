import type { Consumer } from '../engine/engine.ts'
import type { Lease } from '../engine/outcome.ts'
import type { Clock } from '../time/clock.ts'

export interface ClaimPlan {
  readonly max: number
  readonly perType: Record<string, number> | undefined
}

export interface ClaimLoopParts {
  readonly clock: Clock
  readonly consumer: Pick<Consumer, 'claim' | 'isRemote'>
  readonly pollMs: number
  /** What to ask for now, or null when nothing more can be taken. `inHand`: leases that were brought and not yet taken. */
  plan(inHand: number): ClaimPlan | null
  /** Whether a claim asked for under `plan` misses work that could be taken by now. */
  isOutdated(plan: ClaimPlan): boolean
  /** Before every claim. */
  onLook?(): void
  onLeases(leases: readonly Lease[]): void
  onError(error: unknown): void
}

interface Claim {
  readonly plan: ClaimPlan
  readonly abort: AbortController
  readonly done: Promise<void>
}

/** Empty answers that come sooner than this were no waiting. */
const INSTANT_MS = 2
/** So many of them in a row are taken for a store that does not wait; the loop then waits itself. */
const INSTANT_MAX = 8

/**
 * One claim is under way at any time, as long as there is something to take. `pump` is called whenever that may have
 * changed; it asks at once, in the caller's turn of the event loop.
 */
export class ClaimLoop {
  readonly #parts: ClaimLoopParts
  readonly #stop = new AbortController()
  #claim: Claim | null = null
  #instant = 0

  constructor(parts: ClaimLoopParts) {
    this.#parts = parts
  }

  pump(inHand = 0): void {
    if (this.#stop.signal.aborted) return
    if (this.#claim !== null) {
      // A type that was full when it was asked for has room again: ask anew, or it would wait a whole poll.
      if (this.#parts.isOutdated(this.#claim.plan)) this.#claim.abort.abort()
      return
    }
    const plan = this.#parts.plan(inHand)
    if (plan === null) return
    const abort = new AbortController()
    this.#claim = { plan, abort, done: this.#ask(plan, abort.signal) }
  }

  /** Resolves when the claim under way has ended and what it brought was handed over (X108). */
  async stop(): Promise<void> {
    this.#stop.abort()
    this.#claim?.abort.abort()
    await this.#claim?.done
  }

  async #ask(plan: ClaimPlan, signal: AbortSignal): Promise<void> {
    const { clock, consumer, pollMs, onLeases, onError } = this.#parts
    this.#parts.onLook?.()
    const askedAtMs = clock.monotonicMs()
    const { max, perType } = plan
    let leases: readonly Lease[] = []
    try {
      leases = await consumer.claim({ max, waitMs: pollMs, signal, ...(perType !== undefined && { perType }) })
      if (leases.length === 0) await this.#rest(clock.monotonicMs() - askedAtMs, signal)
    } catch (error) {
      onError(error)
      await clock.sleep(pollMs, this.#stop.signal)
    }
    this.#claim = null
    if (leases.length > 0) {
      this.#instant = 0
      if (consumer.isRemote === true) this.pump(leases.length)
      onLeases(leases)
    }
    // Short jobs end within this turn of the event loop; asking after it lets their settle and the next claim meet in
    // one transaction.
    setImmediate(() => this.pump())
  }

  /** An engine that answers at once with nothing, over and over, must not make this loop spin. */
  async #rest(waitedMs: number, signal: AbortSignal): Promise<void> {
    this.#instant = waitedMs < INSTANT_MS && !signal.aborted ? this.#instant + 1 : 0
    if (this.#instant < INSTANT_MAX) return
    const { clock, pollMs } = this.#parts
    await clock.sleep(Math.min(pollMs, this.#instant), this.#stop.signal)
  }
}
