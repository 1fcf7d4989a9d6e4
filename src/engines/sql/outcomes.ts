/** What a start that ended without a result leaves in the job's history. */
import type { LostReason, Outcome } from '../../engine/outcome.ts'
import type { ErrorRecord, JobEventName } from '../../job/job.ts'
import type { Ended } from '../../job/states.ts'

export type Uncompleted = Exclude<Outcome, { kind: 'complete' }>

interface OutcomeEvent {
  readonly name: JobEventName
  readonly detail: Readonly<Record<string, unknown>>
}

/** In order. `supersededBy`: the newer job of the latest key that runs instead. */
export function eventsOf(outcome: Uncompleted, supersededBy: string | null): readonly OutcomeEvent[] {
  const failure = outcome.kind === 'release' ? [] : [failed(outcome.error)]
  if (supersededBy !== null) return [...failure, { name: 'superseded', detail: { by: supersededBy } }]
  switch (outcome.kind) {
    case 'retry':
      return [...failure, { name: 'retried', detail: { delayMs: outcome.delayMs } }]
    case 'dead':
      return [...failure, { name: 'dead', detail: {} }]
    case 'release':
      return [{ name: 'released', detail: { reason: outcome.reason, delayMs: outcome.delayMs } }]
    default:
      return outcome satisfies never
  }
}

function failed({ name, code, message }: ErrorRecord): OutcomeEvent {
  return { name: 'failed', detail: { name, code, message } }
}

/** Why a lease no longer holds, by how its job ended. */
export function lostReason(ended: Ended | null): LostReason {
  if (ended === 'superseded') return 'superseded'
  return ended === null ? 'expired' : 'cancelled'
}
