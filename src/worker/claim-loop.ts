import { setImmediate as immediate } from 'node:timers/promises'
import type { Consumer } from '../engine/engine.ts'
import type { Lease } from '../engine/outcome.ts'
import { type Clock, sharedWait } from '../time/clock.ts'

export interface ClaimPlan {
  readonly max: number
  readonly perType: Record<string, number> | undefined
}

interface ClaimLoopParts {
  readonly clock: Clock
  readonly consumer: Pick<Consumer, 'claim' | 'isRemote' | 'looksAgain' | 'claimsAhead'>
  /** Null: as often as is right for the consumer. */
  readonly pollMs: number | null
  /** What to claim now, or null when there is no room. `inHand`: leases that have no slot yet, arrived or asked for. */
  plan(inHand: number): ClaimPlan | null
  /** Whether a claim made under `plan` misses work for which there is room by now. */
  isOutdated(plan: ClaimPlan): boolean
  /** Called before every claim. */
  onLook?(): void
  onLeases(leases: readonly Lease[]): void
  onError(error: unknown): void
}

interface Claim {
  readonly plan: ClaimPlan
  readonly abort: AbortController
}

/** How often to look for jobs, and how often to ask again a consumer that looks by itself. */
const POLL_MS = 1_000
const AGAIN_MS = 30_000
/** Fewer jobs than this, and than were asked for, mean that the store has no more. */
const MANY = 16
/** An empty answer that arrives sooner than this did not wait. */
const INSTANT_MS = 2
/** After this many in a row the loop waits itself, so that it does not spin. */
const INSTANT_MAX = 8

/**
 * Keeps one claim under way while there is room, from `start` to `stop`; two while many jobs wait, where the engine does one
 * behind the other. Call `pump` whenever that may have changed; it claims synchronously, in the caller's turn of the event loop.
 */
export class ClaimLoop {
  readonly #parts: ClaimLoopParts
  readonly #stop = new AbortController()
  /** Those that have no answer yet. */
  readonly #claims = new Set<Claim>()
  /** … or whose leases are not handed over yet. */
  readonly #asks = new Set<Promise<void>>()
  /** The last claim brought so many that there are probably more. */
  #isBacklog = false
  /** Leases that have arrived and were not handed over yet. */
  #inHand = 0
  #instant = 0
  #isOpen = false
  readonly #pollMs: number
  readonly #waitMs: number

  constructor(parts: ClaimLoopParts) {
    this.#parts = parts
    const { pollMs, consumer } = parts
    this.#pollMs = pollMs ?? POLL_MS
    this.#waitMs = pollMs ?? (consumer.looksAgain === true ? AGAIN_MS : POLL_MS)
  }

  start(): void {
    this.#isOpen = true
    this.pump()
  }

  pump(): void {
    if (!this.#isOpen) return
    let askedFor = 0
    for (const { plan, abort } of this.#claims) {
      // A type that was full has room again. Without a new claim it would wait for a whole poll.
      if (this.#parts.isOutdated(plan)) abort.abort()
      askedFor += plan.max
    }
    if (this.#claims.size >= (this.#isBacklog ? 2 : 1)) return
    const plan = this.#parts.plan(this.#inHand + askedFor)
    if (plan === null) return
    // Behind another one it does not wait: of two that wait, each wake-up would send two statements.
    const waitMs = this.#claims.size > 0 ? 0 : sharedWait(this.#parts.clock, this.#waitMs)
    const claim = { plan, abort: new AbortController() }
    this.#claims.add(claim)
    const ask = this.#ask(claim, waitMs).finally(() => this.#asks.delete(ask))
    this.#asks.add(ask)
  }

  /** Asks anew: limits that the claim under way waits for have changed. */
  restart(): void {
    for (const { abort } of this.#claims) abort.abort()
    this.pump()
  }

  /** Resolves when the claims under way have ended and their leases were handed over. */
  async stop(): Promise<void> {
    this.#isOpen = false
    this.#stop.abort()
    for (const { abort } of this.#claims) abort.abort()
    await Promise.all(this.#asks)
  }

  async #ask(claim: Claim, waitMs: number): Promise<void> {
    const { clock, consumer, onLeases, onError } = this.#parts
    const { max, perType } = claim.plan
    const { signal } = claim.abort
    this.#parts.onLook?.()
    const askedAtMs = clock.monotonicMs()
    let leases: readonly Lease[] = []
    try {
      leases = await consumer.claim({ max, waitMs, signal, ...(perType !== undefined && { perType }) })
      if (leases.length === 0 && waitMs > 0) await this.#rest(clock.monotonicMs() - askedAtMs, signal)
    } catch (error) {
      onError(error)
      await clock.sleep(this.#pollMs, this.#stop.signal)
    }
    this.#claims.delete(claim)
    this.#isBacklog = consumer.claimsAhead === true && leases.length >= Math.max(max / 2, MANY)
    if (leases.length > 0) {
      this.#instant = 0
      if (consumer.isRemote === true && leases.length >= Math.min(max, MANY)) {
        this.#inHand += leases.length
        this.pump()
        // The next claim is sent before handlers take the event loop, so the store works on it while they compute.
        await immediate()
        this.#inHand -= leases.length
      }
      onLeases(leases)
    }
    // Short jobs end within this turn of the event loop. Claiming after it lets their settle and the next claim share a
    // transaction.
    setImmediate(() => this.pump())
  }

  /** An engine that keeps answering at once with nothing must not make this loop spin. */
  async #rest(waitedMs: number, signal: AbortSignal): Promise<void> {
    this.#instant = waitedMs < INSTANT_MS && !signal.aborted ? this.#instant + 1 : 0
    if (this.#instant < INSTANT_MAX) return
    const { clock } = this.#parts
    await clock.sleep(Math.min(this.#pollMs, this.#instant), this.#stop.signal)
  }
}
