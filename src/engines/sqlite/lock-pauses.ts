import { systemClock } from '../../time/clock.ts'

/** Short at first, because a lock is usually held for some milliseconds. */
const RETRY_MS_MIN = 0.5
const RETRY_MS_MAX = 8
/**
 * Where processes compete for jobs, one whose turn has not come after some attempts leaves the file to the others for a
 * while. Those that go on have their pages and their code at hand, and fewer wait for a processor at the same time.
 */
const REST_MS = 80

/** The pauses between attempts to lock a file that another process has locked. Real time, also under an injected clock. */
export class LockPauses {
  readonly #random: () => number
  #nextMs = RETRY_MS_MIN
  #endRest: () => void = () => {}

  constructor(random: () => number) {
    this.#random = random
  }

  /** The first attempt of a transaction has failed. */
  begin(): void {
    this.#nextMs = RETRY_MS_MIN
  }

  /** `mayRest`: nothing that waits for the lock is urgent. */
  async next(mayRest: boolean): Promise<void> {
    if (mayRest && this.#nextMs === RETRY_MS_MAX) {
      const ending = new AbortController()
      this.#endRest = () => ending.abort('hurry')
      await systemClock.sleep(this.#spread(REST_MS), ending.signal)
      this.#nextMs = RETRY_MS_MIN
      return
    }
    await systemClock.sleep(this.#spread(this.#nextMs))
    this.#nextMs = Math.min(this.#nextMs * 2, RETRY_MS_MAX)
  }

  /** Something urgent waits now: ends a rest. */
  hurry(): void {
    this.#endRest()
  }

  #spread(ms: number): number {
    return ms * (0.5 + this.#random())
  }
}
