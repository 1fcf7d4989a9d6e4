import type { SubscribedType } from '../../engine/engine.ts'
import type { Lease, LostReason } from '../../engine/outcome.ts'
import { PassingMap } from '../../engine/passing-map.ts'
import type { Held, Holding } from './holding.ts'
import { toJob } from './record.ts'

/** A record that was handed out. */
export interface Grip {
  readonly lease: Lease
  readonly leaseMs: number
  readonly holding: Holding
  readonly held: Held
  expiresAtMs: number
}

const NONE: readonly Grip[] = []

/**
 * What a consumer has handed out. The group is the lease towards others; this one is towards our own worker, so that a
 * job that it has forgotten does not keep its key back for ever.
 */
export class Leases {
  readonly #grips = new PassingMap<string, Grip>()
  readonly #prefix: string
  #claims = 0
  /** No lease runs out before this: looking at each of them at every claim would cost the square of their number. */
  #noneBeforeMs = Number.POSITIVE_INFINITY

  /** `prefix`: what topics begin with before the type. */
  constructor(prefix: string) {
    this.#prefix = prefix
  }

  get size(): number {
    return this.#grips.size
  }

  /** Hands a record out: counts the start, and gives it a token that no other claim has had and that says where it stood. */
  grant(holding: Holding, held: Held, { leaseMs, attempts }: SubscribedType, nowMs: number): Grip {
    const attempt = holding.watermark.start(held.offset)
    const { job, verdict } = toJob(held.record, this.#prefix, attempts)
    this.#claims += 1
    const token = `${holding.membership}/${held.offset}/${this.#claims}`
    const expiresAtMs = nowMs + leaseMs
    if (expiresAtMs < this.#noneBeforeMs) this.#noneBeforeMs = expiresAtMs
    const lease: Lease =
      verdict === null ? { job, attempt, token, expiresAtMs } : { job, attempt, token, expiresAtMs, verdict }
    const grip: Grip = { lease, leaseMs, holding, held, expiresAtMs }
    this.#grips.set(token, grip)
    return grip
  }

  /** The same lease from now on; null when it is gone. */
  again(token: string, nowMs: number): Lease | null {
    const grip = this.#grips.get(token)
    if (grip === undefined) return null
    const expiresAtMs = nowMs + grip.leaseMs
    const lease = { ...grip.lease, expiresAtMs }
    this.#grips.set(token, { ...grip, lease, expiresAtMs })
    return lease
  }

  /** It holds until then. */
  extend(grip: Grip, untilMs: number): void {
    grip.expiresAtMs = untilMs
    this.#noneBeforeMs = Math.min(this.#noneBeforeMs, untilMs)
  }

  /** Null when it holds; else why it does not. */
  refusal(token: string, nowMs: number): LostReason | null {
    const grip = this.#grips.get(token)
    if (grip === undefined) return 'expired'
    if (grip.holding.isLost) return 'revoked'
    return grip.expiresAtMs > nowMs ? null : 'expired'
  }

  find(token: string): Grip | null {
    return this.#grips.get(token) ?? null
  }

  /** Takes it out of the books. */
  remove(token: string): Grip | null {
    const grip = this.find(token)
    this.#grips.delete(token)
    return grip
  }

  /** What could not be settled after all. */
  restore(grip: Grip): void {
    this.#noneBeforeMs = Math.min(this.#noneBeforeMs, grip.expiresAtMs)
    this.#grips.set(grip.lease.token, grip)
  }

  removeOf(holding: Holding): readonly Grip[] {
    return this.#removeWhere((grip) => grip.holding === holding)
  }

  removeExpired(nowMs: number): readonly Grip[] {
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
    const removed = [...this.#grips.values()].filter(isGone)
    for (const { lease } of removed) this.#grips.delete(lease.token)
    return removed
  }
}
