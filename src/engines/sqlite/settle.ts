import type { Lease, Lost, Outcome, Settlement } from '../../engine/outcome.ts'
import { toIso } from '../../time/iso.ts'
import { eventsOf, type Uncompleted } from '../sql/outcomes.ts'
import { releaseSuccessors, reviewSuccessors } from './dependencies.ts'
import { recordEvent } from './history.ts'
import { FIND_LATEST, UNBLOCK_LATEST } from './latest-keys.ts'
import { change, type Holder, toLost } from './leases.ts'
import { fromLeaseToken, HELD, KEY_RELEASED, toMs, UNLEASED } from './rows.ts'
import { RetryIndividually } from './writer.ts'

/** Many completions in one statement. Rows are [rowid, token, result, durationMs]; keyed jobs go through COMPLETE_ONE. */
export const COMPLETE_MANY = `
UPDATE job_queue SET status = 'completed', result = done.value ->> 2, duration_ms = done.value ->> 3,
  completed_at = :now, completed_by = lease_owner, error = NULL, ${UNLEASED}
FROM json_each(:done) AS done
WHERE job_queue.rowid = done.value ->> 0 AND lease_token = done.value ->> 1
  AND status = 'in_progress' AND lease_until > :now`

export const COMPLETE_ONE = `
UPDATE job_queue SET status = 'completed', result = :result, duration_ms = :durationMs, completed_at = :now,
  completed_by = lease_owner, error = NULL,
  ${KEY_RELEASED}, ${UNLEASED}
WHERE ${HELD}`

export const RETRY_ONE = `
UPDATE job_queue SET status = 'queued', scheduled_at = :due, started_at = NULL, error = :error, error_record = :record, ${UNLEASED}
WHERE ${HELD}`

export const DEAD_LETTER_ONE = `
UPDATE job_queue SET status = 'dead_letter', completed_at = :now, error = :error, error_record = :record,
  ${KEY_RELEASED}, ${UNLEASED}
WHERE ${HELD}`

/** Without a delay it keeps its place. It was due: that the clock was set back meanwhile must not hold it up. */
export const RELEASE_ONE = `
UPDATE job_queue SET status = 'queued', attempts = attempts - 1, scheduled_at = coalesce(:due, min(scheduled_at, :now)), started_at = NULL, ${UNLEASED}
WHERE ${HELD}`

/** An older version of a latest key is not run again while a newer one waits. */
export const SUPERSEDE_HELD = `
UPDATE job_queue SET status = 'dead_letter', ended = 'superseded', completed_at = :now, error = :error, error_record = :record,
  ${KEY_RELEASED}, ${UNLEASED}
WHERE ${HELD}`

export const READ_START = `SELECT started_at FROM job_queue WHERE id = :id`

/**
 * Applies the outcomes whose tokens hold and returns the others. Inside a write transaction. Unless `individually`, it may
 * throw RetryIndividually, and then the transaction must be rolled back.
 */
export function settleLeases(
  holder: Holder,
  settlements: readonly Settlement[],
  individually: boolean,
): readonly Lost[] {
  if (individually) return settlements.flatMap((settlement) => settleOne(holder, settlement))
  completeMany(holder, settlements.filter(isPlainCompletion))
  return settlements.flatMap((settlement) => (isPlainCompletion(settlement) ? [] : settleOne(holder, settlement)))
}

type Completion = Settlement & { readonly outcome: Extract<Outcome, { kind: 'complete' }> }

/** Completions that free no key and unblock no newer job: the hot path. */
function isPlainCompletion(settlement: Settlement): settlement is Completion {
  const { job } = settlement.lease
  return settlement.outcome.kind === 'complete' && job.key === null && job.latestKey === null
}

/** Nearly always all leases hold. Finding out which did not is left to the individual retry. */
function completeMany({ connection, nowMs }: Holder, completions: readonly Completion[]): void {
  if (completions.length === 0) return
  const done = completions.map(({ lease, outcome }) => {
    const fence = fromLeaseToken(lease.token)
    return [fence.rowid, fence.token, outcome.result, Math.round(outcome.durationMs)]
  })
  const { changes } = connection.prepare(COMPLETE_MANY).run({ done: JSON.stringify(done), now: toIso(nowMs) })
  if (Number(changes) !== completions.length) throw new RetryIndividually('a lease is gone')
  const completed = completions.map(({ lease }) => lease)
  releaseSuccessors(connection, completed, nowMs)
}

function settleOne(holder: Holder, { lease, outcome }: Settlement): Lost[] {
  const held =
    lease.job.latestKey === null ? applyOutcome(holder, lease, outcome) : settleLatest(holder, lease, outcome)
  return held ? [] : [toLost(holder.connection, lease)]
}

function applyOutcome(holder: Holder, lease: Lease, outcome: Outcome): boolean {
  if (outcome.kind !== 'complete') return endStart(holder, lease, outcome, null)
  const done = { result: outcome.result, durationMs: Math.round(outcome.durationMs) }
  if (!change(holder, COMPLETE_ONE, lease, done)) return false
  releaseSuccessors(holder.connection, [lease], holder.nowMs)
  return true
}

/** A start that did not complete. `newerId`: the job of the same latest key that supersedes it. */
function endStart(holder: Holder, lease: Lease, outcome: Uncompleted, newerId: string | null): boolean {
  // The start time leaves the row, so the first event keeps it.
  const startedAtMs = readStart(holder, lease)
  if (!applyUncompleted(holder, lease, outcome, newerId !== null)) return false
  const { connection, worker, nowMs } = holder
  for (const [index, { name, detail }] of eventsOf(outcome, newerId).entries()) {
    const told = index === 0 ? { ...detail, startedAtMs } : detail
    recordEvent(connection, { id: lease.job.id, name, attempt: lease.attempt, worker, detail: told }, nowMs)
  }
  if (newerId !== null || outcome.kind === 'dead') reviewSuccessors(connection, lease.job.id, nowMs)
  return true
}

function applyUncompleted(holder: Holder, lease: Lease, outcome: Uncompleted, isSuperseded: boolean): boolean {
  const error = outcome.kind === 'release' ? null : outcome.error
  const failure = { error: error?.message ?? null, record: error === null ? null : JSON.stringify(error) }
  if (isSuperseded) return change(holder, SUPERSEDE_HELD, lease, failure)
  switch (outcome.kind) {
    case 'retry':
      return change(holder, RETRY_ONE, lease, { due: toIso(holder.nowMs + outcome.delayMs), ...failure })
    case 'dead':
      return change(holder, DEAD_LETTER_ONE, lease, failure)
    case 'release':
      return change(holder, RELEASE_ONE, lease, {
        due: outcome.delayMs > 0 ? toIso(holder.nowMs + outcome.delayMs) : null,
      })
    default:
      return outcome satisfies never
  }
}

/** A start that did not complete gives way to a newer job of its latest key. Either way the newer one may run now. */
function settleLatest(holder: Holder, lease: Lease, outcome: Outcome): boolean {
  const { connection, nowMs } = holder
  const subject = { type: lease.job.type, latestKey: lease.job.latestKey ?? '' }
  const newer = (connection.prepare(FIND_LATEST).all(subject) as { id: string; status: string }[]).find(
    (job) => job.status === 'queued',
  )
  const held =
    newer === undefined || outcome.kind === 'complete'
      ? applyOutcome(holder, lease, outcome)
      : endStart(holder, lease, outcome, newer.id)
  if (held) connection.prepare(UNBLOCK_LATEST).run({ ...subject, now: toIso(nowMs) })
  return held
}

function readStart({ connection }: Holder, lease: Lease): number | null {
  const row = connection.prepare(READ_START).get({ id: lease.job.id }) as { started_at: string | null } | undefined
  return toMs(row?.started_at ?? null)
}
