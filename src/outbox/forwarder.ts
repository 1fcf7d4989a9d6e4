import type { Leadership } from '../engine/leadership.ts'
import type { Outbox } from '../engine/outbox.ts'
import { type Backoff, backoffMs } from '../job/backoff.ts'
import type { NewJob } from '../job/job.ts'
import type { LeadershipTerm } from '../keeper/leader-election.ts'
import { LeaderElection } from '../keeper/leader-election.ts'
import type { Clock } from '../time/clock.ts'

export interface ForwarderParts {
  /** Which outbox of the store. */
  readonly name: string
  readonly outbox: Outbox
  readonly leadership: Leadership
  /** The id under which it campaigns. */
  readonly id: string
  readonly clock: Clock
  readonly random: () => number
  readonly intervalMs: number
  readonly pollMs: number
  readonly batchMax: number
  /** Resolves when the target has all of them. */
  send(jobs: readonly NewJob[]): Promise<void>
  onError(error: unknown): void
}

/** While the target is away. */
const BACKOFF: Backoff = { kind: 'exponential', base: 200, max: '5s', jitter: 'equal' }
/** A batch is in memory twice, as text and as jobs. */
const BATCH_BYTES_MAX = 4 * 1_024 * 1_024

/**
 * Hands the jobs of an outbox on, in their order: one batch after the other, each removed when the target has
 * acknowledged it. What was sent and not removed is sent again under the same ids, so nothing is lost and a batch may
 * be repeated. Of all forwarders of an outbox one works, the others wait to take over.
 */
export class Forwarder {
  readonly #parts: ForwarderParts
  readonly #election: LeaderElection
  readonly #stop = new AbortController()
  readonly #stopped: Promise<void>
  #work: Promise<void> = Promise.resolve()
  #alarm = new AbortController()
  /** Grows with success. After a failure one job goes alone, so that one that is refused holds back no other before it. */
  #size: number
  #failures = 0

  constructor(parts: ForwarderParts) {
    this.#parts = parts
    this.#size = parts.batchMax
    this.#election = new LeaderElection({
      name: `outbox:${parts.name}`,
      holder: parts.id,
      intervalMs: parts.intervalMs,
      leadership: parts.leadership,
      clock: parts.clock,
      onTaken: (term) => {
        this.#work = this.#work.then(() => this.#forward(term))
      },
      onLost: () => {},
      onError: parts.onError,
    })
    this.#stopped = this.#run()
  }

  get leads(): boolean {
    return this.#election.isHeld
  }

  /** Something was added here: it need not wait for the next look. */
  wake(): void {
    this.#alarm.abort()
  }

  /** Ends after the batch that is under way, and lets another forwarder take over. Never rejects. */
  stop(): Promise<void> {
    this.#stop.abort()
    return this.#stopped
  }

  async #run(): Promise<void> {
    await this.#election.keep(this.#stop.signal)
    await this.#work
    await this.#election.resign().catch(this.#parts.onError)
  }

  async #forward(term: LeadershipTerm): Promise<void> {
    const { clock } = this.#parts
    while (await term.holds()) {
      this.#alarm = new AbortController()
      const waitMs = await this.#forwardOnce(term)
      // What is added while the target is away must not make it be asked more often.
      const wakers = this.#failures > 0 ? [term.signal] : [term.signal, this.#alarm.signal]
      await clock.sleep(waitMs, AbortSignal.any(wakers))
    }
  }

  /** Answers how long to wait before the next look. */
  async #forwardOnce(term: LeadershipTerm): Promise<number> {
    const { outbox, name, send, pollMs, batchMax, onError, random } = this.#parts
    try {
      const batch = await outbox.first(name, { max: this.#size, bytesMax: BATCH_BYTES_MAX })
      // Reading may have taken long, and a paused forwarder must not send after its successor.
      if (batch.length === 0 || !(await term.holds())) return pollMs
      await send(batch.map(({ job }) => job))
      await outbox.remove(name, batch)
      this.#failures = 0
      this.#size = Math.min(batchMax, this.#size * 2)
      return 0
    } catch (error) {
      this.#failures += 1
      this.#size = 1
      onError(error)
      return backoffMs(BACKOFF, this.#failures, random)
    }
  }
}
