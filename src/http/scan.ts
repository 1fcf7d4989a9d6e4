import type { Clock } from '../time/clock.ts'

/** A search looks at no more than this for one answer, and for no longer; its cursor goes on from there. */
const SCANNED_MAX = 2_000
const SCAN_MS = 25
const SCAN_PAGE = 100

export interface Scan<Item, Place> {
  readonly clock: Clock
  readonly limit: number
  readonly from: Place | null
  read(after: Place | null, max: number): Promise<readonly Item[]>
  placeOf(item: Item): Place
  /** Null where every item is wanted. */
  readonly matches: ((item: Item) => boolean) | null
}

/** One page of what matches, and where the next one begins: null when nothing is left. */
export async function scan<Item, Place>({ clock, limit, from, read, placeOf, matches }: Scan<Item, Place>) {
  const startedMs = clock.monotonicMs()
  // One more than wanted tells whether there is another page.
  const max = matches === null ? limit + 1 : SCAN_PAGE
  const items: Item[] = []
  let after = from
  for (let scanned = 0; ; ) {
    const page = await read(after, max)
    for (const item of page) {
      if (items.length === limit) return { items, next: after }
      after = placeOf(item)
      if (matches === null || matches(item)) items.push(item)
    }
    scanned += page.length
    if (page.length < max) return { items, next: null }
    if (scanned >= SCANNED_MAX || clock.monotonicMs() - startedMs >= SCAN_MS) return { items, next: after }
  }
}
