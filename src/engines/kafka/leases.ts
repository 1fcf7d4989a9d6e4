import { Bag, type Bagged } from '../../engine/bag.ts'
import type { SubscribedType } from '../../engine/engine.ts'
import type { Lease, LostReason } from '../../engine/outcome.ts'
import type { Clock } from '../../time/clock.ts'
import { ClockSteps } from '../../time/steps.ts'
import type { Held, Holding } from './holding.ts'
import { type ReadJob, toJob } from './record.ts'

/** A record that was handed out: the lease that a worker has in hand, and where its record stands. */
export class Grip implements Lease, Bagged {
  readonly job: ReadJob['job']
  readonly verdict?: string
  readonly attempt: number
  expiresAtMs: number
  bagAt = -1
  readonly #holding: Holding
  readonly #held: Held
  readonly #membership: string
  readonly #number: number

  constructor(
    holding: Holding,
    held: Held,
    { job, verdict }: ReadJob,
    start: { readonly attempt: number; readonly number: number; readonly expiresAtMs: number },
  ) {
    this.job = job
    if (verdict !== null) this.verdict = verdict
    this.attempt = start.attempt
    this.expiresAtMs = start.expiresAtMs
    this.#number = start.number
    this.#membership = holding.membership
    this.#holding = holding
    this.#held = held
  }

  /** Where the record stood, and a number that no other claim has had. Made when asked for: few ever are. */
  get token(): string {
    return `${this.#membership}/${this.#held.offset}/${this.#number}`
  }

  get holding(): Holding {
    return this.#holding
  }

  get held(): Held {
    return this.#held
  }
}

const NONE: readonly Grip[] = []

/**
 * What a consumer has handed out. The group is the lease towards others; this one is towards our own worker, so that a
 * job that it has forgotten does not keep its key back for ever.
 */
export class Leases {
  readonly #grips = new Bag<Grip>()
  readonly #prefix: string
  #claims = 0
  /** No lease runs out before this: looking at each of them at every claim would cost the square of their number. */
  readonly #steps: ClockSteps
  #noneBeforeMs = Number.POSITIVE_INFINITY

  /** `prefix`: what topics begin with before the type. */
  constructor(prefix: string, clock: Clock) {
    this.#prefix = prefix
    this.#steps = new ClockSteps(clock)
  }

  /** What is left of every lease stays when the clock is set. */
  #followClock(): void {
    const stepMs = this.#steps.take()
    if (stepMs === 0) return
    for (const grip of this.#grips.values()) grip.expiresAtMs += stepMs
    this.#noneBeforeMs += stepMs
  }

  get size(): number {
    return this.#grips.size
  }

  /** Hands a record out, and counts the start. */
  grant(holding: Holding, held: Held, { leaseMs, attempts }: SubscribedType, nowMs: number): Grip {
    const attempt = holding.watermark.start(held.offset)
    this.#claims += 1
    const read = toJob(held.record, this.#prefix, attempts)
    const grip = new Grip(holding, held, read, { attempt, number: this.#claims, expiresAtMs: nowMs + leaseMs })
    this.restore(grip)
    return grip
  }

  /** It holds until then. */
  extend(grip: Grip, untilMs: number): void {
    grip.expiresAtMs = untilMs
    this.#noneBeforeMs = Math.min(this.#noneBeforeMs, untilMs)
  }

  /** Workers give back what they were given; of anything else the token counts. */
  find(lease: Lease): Grip | null {
    if (lease instanceof Grip) return this.#grips.has(lease) ? lease : null
    return this.#grips.values().find(({ token }) => token === lease.token) ?? null
  }

  /** The grip while it holds; else why it does not. */
  check(lease: Lease, nowMs: number): Grip | LostReason {
    this.#followClock()
    const grip = this.find(lease)
    if (grip === null) return 'expired'
    if (grip.holding.isLost) return 'revoked'
    return grip.expiresAtMs > nowMs ? grip : 'expired'
  }

  /** Takes it out of the books. False when it was not in them. */
  remove(grip: Grip): boolean {
    return this.#grips.delete(grip)
  }

  /** What could not be settled after all. */
  restore(grip: Grip): void {
    if (grip.expiresAtMs < this.#noneBeforeMs) this.#noneBeforeMs = grip.expiresAtMs
    this.#grips.add(grip)
  }

  removeOf(holding: Holding): readonly Grip[] {
    return this.#removeWhere((grip) => grip.holding === holding)
  }

  removeExpired(nowMs: number): readonly Grip[] {
    this.#followClock()
    if (nowMs < this.#noneBeforeMs) return NONE
    const removed = this.#removeWhere(({ expiresAtMs }) => expiresAtMs <= nowMs)
    this.#noneBeforeMs = this.nextExpiryMs
    return removed
  }

  get nextExpiryMs(): number {
    let nextMs = Number.POSITIVE_INFINITY
    for (const { expiresAtMs } of this.#grips.values()) nextMs = Math.min(nextMs, expiresAtMs)
    return nextMs
  }

  #removeWhere(isGone: (grip: Grip) => boolean): readonly Grip[] {
    return this.#grips.values().filter((grip) => isGone(grip) && this.#grips.delete(grip))
  }
}
