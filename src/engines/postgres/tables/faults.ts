import type { Clock } from '../../../time/clock.ts'
import { isConflict, isConnectionFault, toEngineError } from '../faults.ts'
import { type RefusalCode, refused } from './service-result.ts'

/** The waits between tries when the database is away for a moment (X187). */
export const RETRY_DELAYS_MS: readonly number[] = Object.freeze([100, 400, 1_600])

const NO_TABLE = '42P01'
const NO_COLUMN = '42703'

function codeOf(error: unknown): string {
  return error instanceof Error ? String(Reflect.get(error, 'code') ?? '') : ''
}

/** The connection failed, or others stood in the way: the same statement may succeed in a moment. */
export function isTransient(error: unknown): boolean {
  if (error instanceof AggregateError && error.errors.some(isTransient)) return true
  return isConnectionFault(error) || isConflict(error)
}

/** The statement was prepared for a table that has changed since. */
export function isSchemaFault(error: unknown): boolean {
  const code = codeOf(error)
  return code === NO_TABLE || code === NO_COLUMN || code === 'ERR_SCHEMA_MISSING'
}

function refusalCodeOf(error: unknown): RefusalCode {
  if (isSchemaFault(error)) return 'schema_missing'
  return isTransient(error) ? 'database_unavailable' : 'database_error'
}

/** A fault as the value that the functions for workers return (E12). */
export function toRefusal(error: unknown, during: string): ReturnType<typeof refused> {
  return refused(refusalCodeOf(error), toEngineError(error, during).message)
}

export interface Retrying {
  readonly clock: Clock
  readonly signal?: AbortSignal
  onRetry(error: unknown, delayMs: number): void
}

/** Runs what may safely be run twice until it succeeds, fails for good, or has used up its tries (E43, X187). */
export async function withRetries<Answer>(
  run: () => Promise<Answer>,
  { clock, signal, onRetry }: Retrying,
): Promise<Answer> {
  for (const delayMs of RETRY_DELAYS_MS) {
    try {
      return await run()
    } catch (error) {
      if (!isTransient(error) || signal?.aborted === true) throw error
      onRetry(error, delayMs)
      await clock.sleep(delayMs, signal)
    }
  }
  return run()
}
