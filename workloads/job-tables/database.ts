import { isConflict, isConnectionFault, toEngineError } from '../../src/engines/postgres/faults.ts'
import type { Clock } from '../../src/time/clock.ts'

/** Match on the code, not on the text. */
export type RefusalCode =
  /** The table is not configured. */
  | 'unknown_table'
  /** An argument is out of range. */
  | 'invalid_argument'
  /** The row is not queued, not due yet, or does not exist. */
  | 'not_claimable'
  /** The row is not processing under this worker. */
  | 'lease_lost'
  /** The lease ended before the call, even if the reaper has not taken it yet. */
  | 'lease_expired'
  /** The job has run past its hard deadline. */
  | 'deadline_passed'
  /** The table or some of its columns do not exist. */
  | 'schema_missing'
  /** The connection failed: whether the call took effect is unknown. */
  | 'database_unavailable'
  /** The database refused the statement. */
  | 'database_error'

/** What every worker function returns. Nothing is thrown. */
export type ServiceResult<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly error: string; readonly code?: RefusalCode }

export function accepted<Value>(value: Value): ServiceResult<Value> {
  return { ok: true, value }
}

export function refused(code: RefusalCode, error: string): { ok: false; error: string; code: RefusalCode } {
  return { ok: false, error, code }
}

/** A row of the driver. All statements return text, so that the user's type parsers do not matter. */
export type Row = Readonly<Record<string, unknown>>

/**
 * A `pg` Pool, Client, or anything else that runs one statement with parameters. Every call is one statement and so one
 * transaction: a pooler in transaction mode works.
 */
export interface Database {
  query(text: string, values?: unknown[]): Promise<{ readonly rows: readonly Row[] }>
}

export function textOf(row: Row, column: string): string | null {
  const value = row[column]
  return value === null || value === undefined ? null : String(value)
}

export function numberOf(row: Row, column: string): number | null {
  const text = textOf(row, column)
  return text === null ? null : Number(text)
}

/** The waits between tries while the database is unavailable. */
export const RETRY_DELAYS_MS: readonly number[] = Object.freeze([100, 400, 1_600])

const NO_TABLE = '42P01'
const NO_COLUMN = '42703'

function codeOf(error: unknown): string {
  return error instanceof Error ? String(Reflect.get(error, 'code') ?? '') : ''
}

/** A failed connection or a conflict: the same statement may succeed later. */
export function isTransient(error: unknown): boolean {
  if (error instanceof AggregateError && error.errors.some(isTransient)) return true
  return isConnectionFault(error) || isConflict(error)
}

/** The table is not what it was when its shape was read. */
export function isSchemaFault(error: unknown): boolean {
  const code = codeOf(error)
  return code === NO_TABLE || code === NO_COLUMN || code === 'ERR_SCHEMA_MISSING'
}

function refusalCodeOf(error: unknown): RefusalCode {
  if (isSchemaFault(error)) return 'schema_missing'
  return isTransient(error) ? 'database_unavailable' : 'database_error'
}

export function toRefusal(error: unknown, during: string): ReturnType<typeof refused> {
  return refused(refusalCodeOf(error), toEngineError(error, during).message)
}

export interface Retrying {
  readonly clock: Clock
  readonly signal?: AbortSignal
  onRetry(error: unknown, delayMs: number): void
}

/** Repeats `run`, which must be safe to repeat, until it succeeds, fails for good or has used up its tries. */
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
