import { toErrorRecord } from '../../../job/error-record.ts'
import type { TableAccess } from './access.ts'
import { numberOf, type Row, textOf } from './database.ts'
import { refuseHolder } from './leases.ts'
import { accepted, refused, type ServiceResult } from './service-result.ts'
import { complete, fail } from './statements.ts'

export interface FinishDetails {
  /** A short code of your own; stored in `fail_code`. */
  readonly code?: string
  /** For people; redacted, cut to 2 000 characters and stored in `fail_reason`. */
  readonly reason?: string
  /** False ends the job now, whatever attempts are left: another start would fail in the same way (X192). */
  readonly retryable?: boolean
}

/** What became of the row. */
export interface FinishedJob {
  readonly id: string
  readonly table: string
  readonly status: 'completed' | 'queued' | 'failed'
  readonly attempt: number
  /** When a job that is queued again may be claimed. */
  readonly nextEarliestRunAt: Date | null
}

interface Call {
  readonly table: string
  readonly id: string
  readonly workerId: string
  readonly attempt: number | null
  readonly success: boolean
  readonly details: FinishDetails
}

/** E11: the end of one start, if the worker still holds the lease. The event is written with the row (X181, X192). */
export async function finishJob(access: TableAccess, call: Call): Promise<ServiceResult<FinishedJob>> {
  const { table, id, workerId, attempt, success, details } = call
  if (typeof id !== 'string' || id === '') return refused('invalid_argument', 'the id is empty; give the id of a row')
  if (typeof success !== 'boolean') return refused('invalid_argument', `'success' is ${success}; give true or false`)
  return access.answer(table, 'finishing', async (shape) => {
    const fence = [id, access.now(), workerId, attempt, table]
    const [row] = success
      ? await access.rows(complete(shape), fence)
      : await access.rows(fail(shape), [...fence, ...failure(access, details)])
    return row === undefined ? refuseHolder(access, shape, call) : accepted(finishedJob(table, row))
  })
}

function failure({ settings }: TableAccess, { code, reason, retryable = true }: FinishDetails): unknown[] {
  // Errors are redacted, cut and made storable in one place.
  const record = toErrorRecord(Object.assign(new Error(String(reason ?? '')), { code: code ?? null }))
  return [
    record.code,
    reason === undefined ? null : record.message,
    retryable,
    settings.backoffBaseMs,
    settings.backoffMaxMs,
  ]
}

function finishedJob(table: string, row: Row): FinishedJob {
  const status = textOf(row, 'status')
  const dueMs = numberOf(row, 'due_ms')
  return {
    id: textOf(row, 'id') ?? '',
    table,
    status: status === 'queued' || status === 'failed' ? status : 'completed',
    attempt: numberOf(row, 'attempt') ?? 0,
    nextEarliestRunAt: dueMs === null ? null : new Date(dueMs),
  }
}
