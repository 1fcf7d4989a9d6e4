import type { Clock } from '../time/clock.ts'

/** The limits of one page of a search; its `next` continues from there. */
const LOOKED_MAX = 20_000
const SCAN_MS = 35
/** A step of an in-process engine blocks the event loop for about as long as this. */
const STEP_MS = 4
const STEP_MIN = 50
const STEP_MAX = 5_000

/** What one step has seen. */
export interface Step<Item, Place> {
  /** In the order of the list; a step may leave out what cannot match. */
  readonly items: readonly Item[]
  /** How many it has looked at, those left out included. */
  readonly looked: number
  /** Behind which the next step begins; null at the end. */
  readonly last: Place | null
  /** Everything newer was looked at; null if the list is not in the order of time. */
  readonly reachedMs: number | null
}

export interface Scan<Item, Place> {
  readonly clock: Clock
  readonly limit: number
  readonly from: Place | null
  /** Looks at up to `max` items behind a place. */
  step(after: Place | null, max: number): Promise<Step<Item, Place>>
  placeOf(item: Item): Place
  /** Null: every item matches. */
  readonly matches: ((item: Item) => boolean) | null
}

export interface Scanned<Item, Place> {
  readonly items: readonly Item[]
  /** Where the next page starts; null at the end. */
  readonly next: Place | null
  readonly looked: number
  readonly reachedMs: number | null
}

/** One page of matches: as many as are asked for, or what a bounded number of steps has found. */
export async function scan<Item, Place>(given: Scan<Item, Place>): Promise<Scanned<Item, Place>> {
  const { clock, limit, from, step, placeOf, matches } = given
  const startedMs = clock.monotonicMs()
  const items: Item[] = []
  let [after, looked] = [from, 0]
  // One more than needed tells whether there is another page.
  for (let max = limit + 1; ; ) {
    const stepMs = clock.monotonicMs()
    const found = await step(after, max)
    const { reachedMs } = found
    looked += found.looked
    const fitting = matches === null ? found.items : found.items.filter(matches)
    const more = fitting[limit - items.length]
    items.push(...fitting.slice(0, limit - items.length))
    const last = items.at(-1)
    if (more !== undefined && last !== undefined) return { items, next: placeOf(last), looked, reachedMs }
    const nowMs = clock.monotonicMs()
    if (found.last === null) return { items, next: null, looked, reachedMs }
    // Another step that takes as long would end after the time is up.
    const isTimeUp = nowMs - startedMs + (nowMs - stepMs) > SCAN_MS
    if (looked >= LOOKED_MAX || isTimeUp) return { items, next: found.last, looked, reachedMs }
    after = found.last
    max = nextStep(max, nowMs - stepMs)
    // An in-process engine answers without I/O. Yield, so that timers and requests can run.
    await new Promise<void>((resolve) => setImmediate(resolve))
  }
}

/** Grows fourfold at most, because one fast step says little about the next. */
function nextStep(max: number, tookMs: number): number {
  const fitting = tookMs > 0 ? Math.floor((max * STEP_MS) / tookMs) : STEP_MAX
  return Math.max(STEP_MIN, Math.min(fitting, max * 4, STEP_MAX))
}
