import { z } from 'zod'
import { TIME_MS_MAX } from './contract/shapes.ts'
import { Refused } from './problems.ts'

/** A place in a list as text that a client hands back and does not read. */
export function toCursor(place: readonly (string | number)[]): string {
  return Buffer.from(JSON.stringify(place)).toString('base64url')
}

function reader<Shape extends z.ZodType>(shape: Shape): (cursor: string) => z.output<Shape> {
  return (cursor) => {
    const place = shape.safeParse(parsed(cursor))
    if (place.success) return place.data
    throw new Refused(400, 'ERR_REQUEST_INVALID', `the cursor is none of this list; begin without one`, {
      issues: [{ path: 'query.cursor', message: 'give what the page before answered as next' }],
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

/** Jobs: the last id. */
export const readJobCursor = reader(z.tuple([id]))
/** Dead letters: when the last one died, and its id. */
export const readLetterCursor = reader(z.tuple([z.number().int().min(0).max(TIME_MS_MAX), id]))
/** The audit: the last entry's number. */
export const readAuditCursor = reader(z.tuple([z.number().int().min(0)]))
