import { OptionError } from '../errors.ts'

const LIST_LIMIT_MAX = 10_000

/** To SQLite, a negative limit means all rows, and a page of everything would fill the caller's memory. */
export function checkListLimit(limit: number, max = LIST_LIMIT_MAX): number {
  if (Number.isInteger(limit) && limit >= 1 && limit <= max) return limit
  throw new OptionError(`'limit' is ${limit}; give a whole number from 1 to ${max}`)
}
