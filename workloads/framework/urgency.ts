import { OptionError } from '../../src/errors.ts'

/**
 * The priority (1 first) of an urgency from 0 to 15 (higher first).
 * Order is kept; neighbours may fall together because ten priorities hold sixteen urgencies.
 *
 * @example
 * await mill.enqueue(dispatchWebhook, payload, { priority: fromUrgency(15) })
 */
export function fromUrgency(urgency: number): number {
  if (!Number.isInteger(urgency) || urgency < 0 || urgency > 15) {
    throw new OptionError(`the urgency is ${urgency}; give a whole number from 0 (last) to 15 (first)`)
  }
  return 10 - Math.round(urgency * 0.6)
}

/** An urgency that `fromUrgency` turns into this priority. */
export function toUrgency(priority: number): number {
  return Math.round((10 - priority) / 0.6)
}
