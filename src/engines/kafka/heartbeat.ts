import type { Clock } from '../../time/clock.ts'

export interface HeartbeatParts {
  readonly clock: Clock
  readonly sessionMs: number
  readonly heartbeatMs: number
  /** How long the group waits for a member that does not join again, though it beats. */
  readonly rebalanceMs: number
  /**
   * One beat, and whether the broker still had us as a member; `unknown` when it could not be asked. `rebalancing`: it had
   * us, and waits for us to join again.
   */
  beat(): Promise<'member' | 'rebalancing' | 'gone' | 'unknown'>
  /** Whether the group takes something from us that other brokers have to confirm. */
  isProven(): Promise<boolean>
  /** It was heard after a time in which it was not sure. */
  onSure(): void
}

/**
 * Whether the broker can have given our partitions away: not while a heartbeat was answered within the session, unless the
 * group has waited for us to join for as long as it ever does. The client sends heartbeats too, but not while it joins, which
 * lasts as long as other members delay the group.
 *
 * Beats are answered from memory. A broker that hung, and does not know yet that another one has the group now, answers them
 * too; so once it was not sure, a beat alone does not make it sure again.
 */
export class Heartbeat {
  readonly #parts: HeartbeatParts
  /** When a beat that was answered had been sent: what the broker counts from is later than that. */
  #heardMs = Number.NEGATIVE_INFINITY
  /** The same of one after which the group may have begun to wait for us. */
  #stableMs = Number.NEGATIVE_INFINITY
  #joiningMs = Number.NEGATIVE_INFINITY
  #isProving = false
  #cancel: (() => void) | null = null
  readonly #waiting = new Set<() => void>()

  constructor(parts: HeartbeatParts) {
    this.#parts = parts
  }

  /** A process that was paused finds out here, before the network tells it. */
  get isFenced(): boolean {
    const { clock, sessionMs, rebalanceMs } = this.#parts
    const nowMs = clock.monotonicMs()
    return nowMs - this.#heardMs >= sessionMs || nowMs - this.#stableMs >= rebalanceMs
  }

  /** A join is about to be asked for: what the group waits for after it has let us in began later than this. */
  joining(): void {
    this.#joiningMs = this.#parts.clock.monotonicMs()
  }

  /** The group has let us in: sends a heartbeat now and at every interval until `stop`. */
  start(): void {
    this.#stableMs = Math.max(this.#stableMs, this.#joiningMs)
    this.#cancel?.()
    const turn = (): void => {
      this.#cancel = this.#parts.clock.after(this.#parts.heartbeatMs, turn)
      void this.#beat()
    }
    turn()
  }

  stop(): void {
    this.#cancel?.()
    this.#cancel = null
    for (const resolve of [...this.#waiting]) resolve()
  }

  /** Resolves when it is known again whether we are a member, or after `ms`. */
  async known(ms: number): Promise<void> {
    if (!this.isFenced || this.#cancel === null) return
    await new Promise<void>((resolve) => {
      const finish = (): void => {
        cancel()
        this.#waiting.delete(finish)
        resolve()
      }
      const cancel = this.#parts.clock.after(ms, finish)
      this.#waiting.add(finish)
    })
  }

  async #beat(): Promise<void> {
    const sentMs = this.#parts.clock.monotonicMs()
    const wasFenced = this.isFenced
    const answer = await this.#parts.beat()
    const isMember = answer === 'member' || answer === 'rebalancing'
    if (isMember && (!wasFenced || (await this.#isProven()))) {
      this.#heardMs = Math.max(this.#heardMs, sentMs)
      if (answer === 'member') this.#stableMs = Math.max(this.#stableMs, sentMs)
    }
    if (answer === 'gone' || !this.isFenced) for (const resolve of [...this.#waiting]) resolve()
    if (wasFenced && !this.isFenced) this.#parts.onSure()
  }

  /** One proof at a time: a broker that answers beats alone keeps each waiting. */
  async #isProven(): Promise<boolean> {
    if (this.#isProving) return false
    this.#isProving = true
    try {
      return await this.#parts.isProven()
    } finally {
      this.#isProving = false
    }
  }
}
