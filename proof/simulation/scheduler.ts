/**
 * Decides what happens next: which call reaches the engine, which answer reaches its caller, or that time goes on. Each
 * decision is a number, so that the same numbers give the same run.
 */
import { EngineError } from '../../src/errors.ts'
import type { Owner, SimulatedClock } from './clock.ts'

/** A number says which of the events that wait happens: 0 the oldest, n the n-th after it; or that time goes on. */
export type Choice = number
export const TIME_GOES_ON = -1

/** What becomes of a call: `before` fails without having reached the engine, `after` took effect and its answer is lost. */
export type CallFault = 'before' | 'after'

interface Event {
  readonly owner: Owner
  run(): void
}

/** Turns of the event loop in which nothing happens before everything has come to rest: the product puts off by up to two. */
const QUIET_TURNS = 3
/** An act of an engine that takes longer never ends. */
const TURNS_MAX = 2_000

export class Scheduler {
  readonly clock: SimulatedClock
  readonly #choose: (waiting: number) => Choice
  readonly #events: Event[] = []
  readonly #judges: (() => void)[] = []
  #acting = 0
  #happened = 0

  /** `choose` is told how many events wait. */
  constructor(clock: SimulatedClock, choose: (waiting: number) => Choice) {
    this.clock = clock
    this.#choose = choose
  }

  /**
   * A call of a process: it reaches the engine when it is chosen, and so does its answer the process. The call of a dead
   * process never returns. `mayWait`: the engine may answer only when something else has happened.
   */
  call<Value>(
    owner: Owner,
    act: () => Promise<Value>,
    { fault = null, mayWait = false }: { readonly fault?: CallFault | null; readonly mayWait?: boolean } = {},
  ): Promise<Value> {
    return new Promise((resolve, reject) => {
      const answer = (run: () => void): void => this.tell(owner, run)
      const fail = (): void => answer(() => reject(new EngineError('ERR_STORAGE_FAILED', FAULT_TEXT)))
      const reach = async (): Promise<void> => {
        if (fault === 'before') return fail()
        if (!mayWait) this.#acting += 1
        try {
          const value = await act()
          if (fault === 'after') fail()
          else answer(() => resolve(value))
        } catch (error) {
          answer(() => reject(error))
        } finally {
          if (!mayWait) this.#acting -= 1
        }
      }
      this.tell(owner, () => void reach())
    })
  }

  /** Something that a process hears of when it is chosen. */
  tell(owner: Owner, run: () => void): void {
    if (owner.isDead) return
    this.#happened += 1
    this.#events.push({ owner, run })
  }

  /** Lets one thing happen, and everything that follows from it at once. False when nothing can ever happen again. */
  async step(): Promise<boolean> {
    const ready = this.#events.filter(({ owner }) => !owner.isDead && !owner.isPaused)
    const choice = this.#choose(ready.length)
    const event = choice === TIME_GOES_ON ? undefined : ready[choice % Math.max(1, ready.length)]
    if (event !== undefined) {
      this.#events.splice(this.#events.indexOf(event), 1)
      event.run()
    } else if (!this.clock.fireNext()) {
      const [oldest] = ready
      if (oldest === undefined) return false
      this.#events.splice(this.#events.indexOf(oldest), 1)
      oldest.run()
    }
    await this.rest()
    return true
  }

  /** Calls `judge` when everything that follows from the present step has happened. */
  atRest(judge: () => void): void {
    this.#judges.push(judge)
  }

  /** Resolves when nothing happens any more unless the scheduler lets it. */
  async rest(): Promise<void> {
    let quiet = 0
    for (let turn = 0; turn < TURNS_MAX && quiet < QUIET_TURNS; turn += 1) {
      const before = this.#happened + this.clock.changes
      await nextTurn()
      quiet = this.#acting > 0 || before !== this.#happened + this.clock.changes ? 0 : quiet + 1
    }
    for (const judge of this.#judges.splice(0)) judge()
  }
}

const FAULT_TEXT = 'the call was told to fail by the simulation'

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
