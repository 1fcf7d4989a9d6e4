import type { Clock } from '../time/clock.ts'
import type { HeldJob } from './held-job.ts'

/** No claimed job waits longer than this for its start; then another worker may have it. */
const WAIT_MS_MAX = 50

/** Jobs claimed ahead of their slots, first come first served. */
export class WaitingJobs {
  readonly #clock: Clock
  readonly #onOverdue: (overdue: readonly HeldJob[]) => void
  #jobs: HeldJob[] = []
  #cancel: (() => void) | null = null

  constructor(clock: Clock, onOverdue: (overdue: readonly HeldJob[]) => void) {
    this.#clock = clock
    this.#onOverdue = onOverdue
  }

  get size(): number {
    return this.#jobs.length
  }

  values(): readonly HeldJob[] {
    return this.#jobs
  }

  add(held: HeldJob): void {
    this.#jobs.push(held)
    if (this.#cancel === null) this.#watch()
  }

  next(): HeldJob | undefined {
    return this.#jobs.shift()
  }

  remove(held: HeldJob): void {
    this.#jobs = this.#jobs.filter((other) => other !== held)
  }

  /** Takes those of some types out. */
  takeOut(isMeant: (type: string) => boolean): readonly HeldJob[] {
    const [out, left]: [HeldJob[], HeldJob[]] = [[], []]
    for (const held of this.#jobs) (isMeant(held.lease.job.type) ? out : left).push(held)
    this.#jobs = left
    return out
  }

  /** Takes all of them out, for good. */
  clear(): readonly HeldJob[] {
    this.#cancel?.()
    this.#cancel = null
    return this.#jobs.splice(0)
  }

  /** The timer runs on when the jobs have started: stopping and starting it for every batch would cost more. */
  #watch(): void {
    this.#cancel = this.#clock.after(WAIT_MS_MAX, () => {
      this.#cancel = null
      const nowMs = this.#clock.monotonicMs()
      const overdue: HeldJob[] = []
      const isOverdue = (held: HeldJob | undefined) => held !== undefined && nowMs - held.heldAtMs >= WAIT_MS_MAX
      while (isOverdue(this.#jobs[0])) overdue.push(...this.#jobs.splice(0, 1))
      if (this.#jobs.length > 0) this.#watch()
      if (overdue.length > 0) this.#onOverdue(overdue)
    })
  }
}
