import type { Clock } from '../../time/clock.ts'

export interface HeartbeatParts {
  readonly clock: Clock
  readonly sessionMs: number
  readonly heartbeatMs: number
  /** One beat, and whether the broker still had us as a member; `unknown` when it could not be asked. */
  beat(): Promise<'member' | 'gone' | 'unknown'>
  /** It was heard after a time in which it was not sure. */
  onSure(): void
}

/**
 * Whether the broker can have given our partitions away: not while a heartbeat was answered within the session. The client
 * sends heartbeats too, but not while it joins, which lasts as long as other members delay the group.
 */
export class Heartbeat {
  readonly #parts: HeartbeatParts
  /** When a beat that was answered had been sent: what the broker counts from is later than that. */
  #heardMs = Number.NEGATIVE_INFINITY
  #cancel: (() => void) | null = null
  readonly #waiting = new Set<() => void>()

  constructor(parts: HeartbeatParts) {
    this.#parts = parts
  }

  /** A process that was paused finds out here, before the network tells it. */
  get isFenced(): boolean {
    return this.#parts.clock.monotonicMs() - this.#heardMs >= this.#parts.sessionMs
  }

  /** Sends a heartbeat now and at every interval until `stop`. */
  start(): void {
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
    if (answer === 'member') this.#heardMs = Math.max(this.#heardMs, sentMs)
    if (answer === 'gone' || !this.isFenced) for (const resolve of [...this.#waiting]) resolve()
    if (wasFenced && !this.isFenced) this.#parts.onSure()
  }
}
