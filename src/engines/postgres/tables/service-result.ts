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
