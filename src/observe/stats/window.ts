import { Histogram } from '../histogram.ts'

/** Outcomes of one type. */
export interface Tally {
  completed: number
  /** Jobs that became dead letters. */
  dead: number
  /** Failed attempts, whether retried or not. */
  failed: number
  /** Attempts whose lease expired; they also count as failed. */
  expired: number
  /** Of completed attempts. */
  readonly durations: Histogram
}

export const WINDOW_MS_MAX = 3_600_000
const SLOT_MS = 60_000
/** An hour touches 61 minutes. */
const SLOTS_MAX = WINDOW_MS_MAX / SLOT_MS + 1

export function emptyTally(): Tally {
  return { completed: 0, dead: 0, failed: 0, expired: 0, durations: new Histogram() }
}

export function addTally(sum: Tally, more: Tally): void {
  sum.completed += more.completed
  sum.dead += more.dead
  sum.failed += more.failed
  sum.expired += more.expired
  sum.durations.addAll(more.durations)
}

/** The outcomes of the last hour, by minute and type. Memory does not grow with their number. */
export class EndedWindow {
  readonly #slots = new Map<number, Map<string, Tally>>()
  #newest = Number.NEGATIVE_INFINITY
  #tallies = new Map<string, Tally>()

  /** The tally for an outcome at `nowMs` of a monotonic clock. */
  at(nowMs: number, type: string): Tally {
    const slot = Math.floor(nowMs / SLOT_MS)
    if (slot !== this.#newest) this.#open(slot)
    let tally = this.#tallies.get(type)
    if (tally === undefined) {
      tally = emptyTally()
      this.#tallies.set(type, tally)
    }
    return tally
  }

  /** By type, over every minute that the last `windowMs` touch. */
  sum(nowMs: number, windowMs: number): ReadonlyMap<string, Tally> {
    const first = Math.floor((nowMs - windowMs) / SLOT_MS)
    const sums = new Map<string, Tally>()
    for (const [slot, tallies] of this.#slots) {
      if (slot < first) continue
      for (const [type, tally] of tallies) {
        const sum = sums.get(type) ?? emptyTally()
        addTally(sum, tally)
        sums.set(type, sum)
      }
    }
    return sums
  }

  #open(slot: number): void {
    this.#newest = slot
    this.#tallies = new Map()
    this.#slots.set(slot, this.#tallies)
    for (const old of this.#slots.keys()) if (old <= slot - SLOTS_MAX) this.#slots.delete(old)
  }
}
