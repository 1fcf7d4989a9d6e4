import { isConflict, isConnectionFault, toEngineError } from '../../src/engines/postgres/faults.ts'
import type { Clock } from '../../src/time/clock.ts'

/** Why something was refused or could not be done. Match on it, never on the text. */
export type RefusalCode =
  /** The table is not one that was configured (E02). */
  | 'unknown_table'
  /** An argument is out of range. */
  | 'invalid_argument'
  /** Not queued, not due yet, or not there (X191). */
  | 'not_claimable'
  /** The row is no longer, or never was, processing under this worker (X171). */
  | 'lease_lost'
  /** The lease ended before the call, whether or not the reaper has come by (X185). */
  | 'lease_expired'
  /** The job has run longer than its hard deadline (X179). */
  | 'deadline_passed'
  /** The table or some of its columns are not there. */
  | 'schema_missing'
  /** The connection failed: it is unknown whether the call took effect. */
  | 'database_unavailable'
  /** The database refused the statement. */
  | 'database_error'

/** The answer of every function for workers. A refusal is a value; nothing is thrown (E12). */
export type ServiceResult<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly error: string; readonly code?: RefusalCode }

export function accepted<Value>(value: Value): ServiceResult<Value> {
  return { ok: true, value }
}

export function refused(code: RefusalCode, error: string): { ok: false; error: string; code: RefusalCode } {
  return { ok: false, error, code }
}

/** A row as a driver hands it over. Our statements return text only, so that type parsers of the user's do not matter. */
export type Row = Readonly<Record<string, unknown>>

/**
 * The part of `pg` that is used here: a Pool, a Client, or anything that runs one statement with parameters.
 * Every call is one statement and thereby one transaction, so a pooler in transaction mode may stand between.
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
