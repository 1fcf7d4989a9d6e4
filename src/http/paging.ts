import { z } from 'zod'
import type { Clock } from '../time/clock.ts'
import { TIME_MS_MAX } from './contract/shapes.ts'
import { HttpError } from './problems.ts'

/** The limits of one page of a search; its cursor continues from there. */
const SCANNED_MAX = 2_000
const SCAN_MS = 25
const SCAN_PAGE = 100

export interface Scan<Item, Place> {
  readonly clock: Clock
  readonly limit: number
  readonly from: Place | null
  read(after: Place | null, max: number): Promise<readonly Item[]>
  placeOf(item: Item): Place
  /** Null: every item matches. */
  readonly matches: ((item: Item) => boolean) | null
}

/** One page of matches, and where the next one starts; null at the end. */
export async function scan<Item, Place>({ clock, limit, from, read, placeOf, matches }: Scan<Item, Place>) {
  const startedMs = clock.monotonicMs()
  // One more than needed tells whether there is another page.
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

/** A position in a list, opaque to clients. */
export function toCursor(place: readonly (string | number)[]): string {
  return Buffer.from(JSON.stringify(place)).toString('base64url')
}

function reader<Shape extends z.ZodType>(shape: Shape): (cursor: string) => z.output<Shape> {
  return (cursor) => {
    const place = shape.safeParse(parsed(cursor))
    if (place.success) return place.data
    throw new HttpError(400, 'ERR_REQUEST_INVALID', `the cursor is not one of this list; start without one`, {
      issues: [{ path: 'query.cursor', message: 'give the `next` of the previous page' }],
    })
  }
}

function parsed(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'))
  } catch {
    return null
  }
}

const id = z
  .string()
  .min(1)
  .max(300)
  .refine((text) => !text.includes('\0'))

/** The last id. */
export const readJobCursor = reader(z.tuple([id]))
/** When the last letter died, and its id. */
export const readLetterCursor = reader(z.tuple([z.number().int().min(0).max(TIME_MS_MAX), id]))
/** The number of the last entry. */
export const readAuditCursor = reader(z.tuple([z.number().int().min(0)]))
