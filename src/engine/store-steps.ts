import { EngineError } from '../errors.ts'
import { backgroundClock, type Clock, STEP_MS_MIN, systemClock } from '../time/clock.ts'

export interface StoreTime {
  /** The store's own time. */
  readonly nowMs: number
  /** The sum of all steps by which times in the store were moved so far, by anyone. */
  readonly followedMs: number
}

export interface StoreClock {
  read(): Promise<StoreTime>
  /** Moves what the store has by `stepMs`, unless more than `followedMs` was followed already. Whether it did. */
  shift(stepMs: number, followedMs: number): Promise<boolean>
  /** Told where this process has moved them. */
  onStep(stepMs: number): void
}

/** As it is told. */
export function clockStepped(store: string, stepMs: number): EngineError {
  const direction = stepMs < 0 ? 'back' : 'forward'
  return new EngineError(
    'ERR_CLOCK_STEPPED',
    `${store}: the server's clock was set ${direction} by ${Math.abs(stepMs)} ms; leases and rate limits were moved with it. Synchronise the clock of the server's machine`,
  )
}

interface Look {
  readonly monotonicMs: number
  /** What the store's clock is ahead of the monotonic one here, between these two: the answer took a while. */
  readonly offsetMs: number
  readonly doubtMs: number
  readonly followedMs: number
}

/** Two clocks that nobody sets drift apart by less than this. */
const DRIFT = 0.0005
const TRIES = 5

/**
 * Notices that the clock of a store on another machine was set: it then moves against the monotonic clock here. The first
 * process that notices moves the times in the store by the step; what the store has summed up of them tells the others
 * that it was done. A process that begins to look after the step cannot know of it.
 */
export class StoreSteps {
  readonly #clock: Clock
  readonly #store: StoreClock
  #last: Look | null = null
  #looking: Promise<void> | null = null
  #moves = 0

  constructor(clock: Clock, store: StoreClock) {
    this.#clock = clock
    this.#store = store
  }

  /** Looks, unless somebody has within the last `maxAgeMs`. */
  async follow(maxAgeMs = 0): Promise<void> {
    if (this.#last !== null && (this.#isInjected ? !this.isStepped : this.#isFresh(this.#last, maxAgeMs))) return
    this.#looking ??= this.#follow().finally(() => {
      this.#looking = null
    })
    await this.#looking
  }

  /**
   * The store's time came with the answer to another question, which was asked at `askedAtMs` of the monotonic clock.
   * False if the store's clock was set: that is followed now, and what else the answer says may be wrong.
   */
  async heard({ nowMs, followedMs }: StoreTime, askedAtMs: number): Promise<boolean> {
    const last = this.#last
    if (last === null || this.#isInjected || this.#looking !== null) return true
    const look = this.#lookOf({ nowMs, followedMs }, askedAtMs)
    if (look.followedMs === last.followedMs && missing(last, look) === 0) {
      this.#last = look
      return true
    }
    await this.follow()
    return false
  }

  /** An injected clock stands for the store's, so a step of it is seen without asking; of a real store this is false. */
  get isStepped(): boolean {
    if (this.#last === null || !this.#isInjected) return false
    return Math.abs(this.#clock.nowMs() - this.#clock.monotonicMs() - this.#last.offsetMs) >= STEP_MS_MIN
  }

  /**
   * Asks, and asks once more for what was refused if the store's clock was set meanwhile. `refused`: what to ask again,
   * or null where nothing was refused.
   */
  async ask<Answer>(
    ask: () => Promise<Answer>,
    refused: (answer: Answer) => (() => Promise<Answer>) | null,
  ): Promise<Answer> {
    const moves = this.#moves
    const answer = await ask()
    const again = refused(answer)
    if (again === null) return answer
    await this.follow()
    return this.#moves === moves ? answer : again()
  }

  get #isInjected(): boolean {
    return this.#clock !== systemClock && this.#clock !== backgroundClock
  }

  #isFresh({ monotonicMs }: Look, maxAgeMs: number): boolean {
    return this.#clock.monotonicMs() - monotonicMs < maxAgeMs
  }

  async #follow(): Promise<void> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      const look = await this.#look()
      const last = this.#last
      const stepMs = last === null ? 0 : missing(last, look)
      if (stepMs === 0) {
        if (last !== null && last.followedMs !== look.followedMs) this.#moves += 1
        this.#last = look
        return
      }
      if (!(await this.#store.shift(stepMs, look.followedMs))) continue
      this.#moves += 1
      this.#last = { ...look, followedMs: look.followedMs + stepMs }
      this.#store.onStep(stepMs)
      return
    }
  }

  async #look(): Promise<Look> {
    const askedAtMs = this.#clock.monotonicMs()
    return this.#lookOf(await this.#store.read(), askedAtMs)
  }

  #lookOf({ nowMs, followedMs }: StoreTime, beforeMs: number): Look {
    const monotonicMs = this.#clock.monotonicMs()
    const doubtMs = (monotonicMs - beforeMs) / 2
    return { monotonicMs, offsetMs: nowMs - beforeMs - doubtMs, doubtMs, followedMs }
  }
}

/** What of a step nobody has followed yet; 0 where the two looks may have seen the same clock. */
function missing(last: Look, look: Look): number {
  const stepMs = look.offsetMs - last.offsetMs - (look.followedMs - last.followedMs)
  const doubtMs = last.doubtMs + look.doubtMs + (look.monotonicMs - last.monotonicMs) * DRIFT
  return Math.abs(stepMs) < STEP_MS_MIN + doubtMs ? 0 : Math.round(stepMs)
}
