import { z } from 'zod'
import { TIME_MS_MAX } from './contract/shapes.ts'
import { HttpError } from './problems.ts'

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
