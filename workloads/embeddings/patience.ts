/** Embedders and models that cannot be reached, or ask to be left alone for a while. */
import { isMillraceError, Postpone } from '../../src/errors.ts'

/** Whether other requests would fail in the same way. */
export function asksForPatience(error: unknown): boolean {
  return isMillraceError(error, 'ERR_OFFLINE', 'ERR_RETRY_AFTER')
}

/** What the error says about the next try, or a minute. */
export function delayOf(error: unknown): string | number {
  const delay: unknown = typeof error === 'object' && error !== null ? Reflect.get(error, 'delay') : undefined
  return typeof delay === 'string' || typeof delay === 'number' ? delay : '1m'
}

/**
 * Runs work that calls `stored` whenever it has kept something that its next run need not do again. A rate limit that stops it
 * after that uses no attempt: with a few requests a minute, a large job would be a dead letter long before it is done.
 */
export async function halfwayAtLimit<Answer>(work: (stored: () => void) => Promise<Answer>): Promise<Answer> {
  let hasStored = false
  const stored = (): void => {
    hasStored = true
  }
  try {
    return await work(stored)
  } catch (error) {
    if (!hasStored || !isMillraceError(error, 'ERR_RETRY_AFTER')) throw error
    throw new Postpone(delayOf(error), error.message, { cause: error })
  }
}
