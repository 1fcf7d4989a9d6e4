import type { Leadership, Term } from '../engine/leadership.ts'
import { type Clock, sharedWait } from '../time/clock.ts'

export interface LeaderElectionParts {
  readonly name: string
  readonly holder: string
  readonly intervalMs: number
  /** Null where the engine keeps no records: then every keeper leads. */
  readonly leadership: Leadership | null
  readonly clock: Clock
  /** Before every campaign. */
  onLook?(): void
  onTaken(term: LeadershipTerm, number: number): void
  onLost(): void
  onError(error: unknown): void
}

interface Held {
  readonly number: number
  readonly over: AbortController
}

/** How long a lease is, in intervals. */
const LEASE = 1.5
/** It is renewed after one interval. A renewal that fails is tried again after this, so that two may fail without a loss. */
const RETRY = 0.2
/** Without a lease there is no hurry. */
const OUTAGE_RETRY = 0.5

/**
 * Lets one of several keepers lead. A lease lasts for one and a half intervals and is renewed after one. A keeper that
 * waits sleeps until the term it saw runs out, so another takes over within one and a half intervals of a leader's death,
 * and within one of its resignation. It saves work and decides nothing: each act of the leader is fenced by itself.
 */
export class LeaderElection {
  readonly #parts: LeaderElectionParts
  readonly #leaseMs: number
  #held: Held | null = null
  /** On both clocks: the monotonic one stands still while a laptop sleeps, the other can be set. */
  #until = { monotonicMs: 0, wallMs: 0 }
  #campaign: Promise<number> | null = null
  #isClosed = false

  constructor(parts: LeaderElectionParts) {
    this.#parts = parts
    this.#leaseMs = Math.ceil(parts.intervalMs * LEASE)
  }

  get isHeld(): boolean {
    return this.#held !== null && this.#isInTime()
  }

  /** Takes, renews or watches the lead until the signal aborts; then gives it up. */
  async keep(stop: AbortSignal): Promise<void> {
    const { clock } = this.#parts
    while (!stop.aborted) {
      this.#parts.onLook?.()
      await clock.sleep(await this.#look(), stop)
    }
    this.#isClosed = true
    await this.#campaign
    this.#leave()
  }

  /** Lets another keeper begin at once. */
  async resign(): Promise<void> {
    const { leadership, name, holder } = this.#parts
    await leadership?.resign(name, holder)
  }

  /** Campaigns, unless a campaign is under way; answers how long to wait before the next. */
  #look(): Promise<number> {
    this.#campaign ??= this.#ask().finally(() => {
      this.#campaign = null
    })
    return this.#campaign
  }

  async #ask(): Promise<number> {
    const { leadership, name, holder, clock, intervalMs, onError } = this.#parts
    // Before the store is asked: by our clocks the lease must never last longer than by the store's.
    const until = { monotonicMs: clock.monotonicMs() + this.#leaseMs, wallMs: clock.nowMs() + this.#leaseMs }
    try {
      const term = (await leadership?.campaign(name, holder, this.#leaseMs)) ?? { holder, number: 0, leftMs: 0 }
      return this.#hear(term, until)
    } catch (error) {
      onError(error)
      if (!this.#isInTime()) this.#leave()
      return intervalMs * (this.#held === null ? OUTAGE_RETRY : RETRY)
    }
  }

  #hear(term: Term, until: { monotonicMs: number; wallMs: number }): number {
    const { holder, intervalMs, clock } = this.#parts
    if (term.holder !== holder) {
      this.#leave()
      return Math.min(intervalMs, Math.max(1, term.leftMs + 1))
    }
    if (this.#held !== null && this.#held.number !== term.number) this.#leave()
    this.#until = until
    if (!this.#isInTime()) {
      // The answer took longer than the lease: only a new question tells whether we still lead.
      this.#leave()
      return 1
    }
    if (this.#held === null) this.#enter(term.number)
    return sharedWait(clock, intervalMs)
  }

  #enter(number: number): void {
    if (this.#isClosed) return
    const held = { number, over: new AbortController() }
    this.#held = held
    const holds = async (): Promise<boolean> => {
      if (this.#held === held && !this.#isInTime()) await this.#look()
      if (this.#held !== held) return false
      // Left, so that the next campaign begins a new term; the caller ends its work.
      if (!this.#isInTime()) this.#leave()
      return this.#held === held
    }
    this.#parts.onTaken({ signal: held.over.signal, holds }, number)
  }

  #leave(): void {
    const held = this.#held
    if (held === null) return
    this.#held = null
    held.over.abort()
    this.#parts.onLost()
  }

  #isInTime(): boolean {
    const { clock, leadership } = this.#parts
    if (leadership === null) return true
    return clock.monotonicMs() < this.#until.monotonicMs && clock.nowMs() < this.#until.wallMs
  }
}

/** What a leader may rely on while it works. */
export interface LeadershipTerm {
  /** Aborts when leadership is lost or given up. */
  readonly signal: AbortSignal
  /** Whether this process still leads; asks the store if the lease has run out by this process's clock. */
  holds(): Promise<boolean>
}

/** Work that the leader does again and again. */
export interface Duty {
  readonly name: string
  /** Does what is due now and answers in how many milliseconds it wants to look again. */
  perform(term: LeadershipTerm): Promise<number>
  /** Calls `wake` when it should look at once. Returns the unsubscriber. */
  onChange?(wake: () => void): () => void
}
