import type { Lease, Outcome } from '../../engine/outcome.ts'
import type { JobView } from '../../job/job.ts'

/** How a job ended that is removed with its end; null for an outcome after which a job stays. */
export function lastView({ job, attempt }: Lease, outcome: Outcome, nowMs: number): JobView | null {
  if ((outcome.kind !== 'complete' && outcome.kind !== 'dead') || outcome.keep !== 0) return null
  const isComplete = outcome.kind === 'complete'
  return {
    ...job,
    state: isComplete ? 'completed' : 'dead_letter',
    ended: null,
    attempt,
    replays: 0,
    progress: null,
    result: isComplete ? JSON.parse(outcome.result) : null,
    error: isComplete ? null : outcome.error,
    leaseOwner: null,
    leaseUntilMs: null,
    updatedAtMs: nowMs,
    startedAtMs: null,
    completedAtMs: nowMs,
    durationMs: isComplete ? outcome.durationMs : null,
  }
}
