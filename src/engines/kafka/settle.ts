/** What an outcome does to a record's partition. Each answers whose record it was, so that many can be told of at once. */
import type { Outcome } from '../../engine/outcome.ts'
import type { ErrorRecord } from '../../job/job.ts'
import { toDeadLetter } from './dead-letters/letter.ts'
import type { KafkaLease } from './leases.ts'
import type { OwnedPartition } from './owned-partition.ts'
import type { NewRecord } from './record.ts'

/** Settled for good: the next record of its key may run. */
export function finish({ owned, held }: KafkaLease): OwnedPartition {
  owned.watermark.finish(held.offset)
  owned.queues.finish(held)
  return owned
}

/** A dead one is buried first, and finished then. */
export function applyOutcome(
  grant: KafkaLease,
  outcome: Exclude<Outcome, { kind: 'dead' }>,
  nowMs: number,
): OwnedPartition {
  const { owned, held } = grant
  switch (outcome.kind) {
    case 'complete':
      return finish(grant)
    case 'retry':
      owned.watermark.defer(held.offset, nowMs + outcome.delayMs, nowMs)
      break
    case 'release':
      owned.watermark.release(held.offset, nowMs + outcome.delayMs)
      break
    default:
      outcome satisfies never
      return owned
  }
  owned.park(held, nowMs + outcome.delayMs)
  return owned
}

/** The lease ran out: the start counts, and the record is due at once. */
export function expire({ owned, held }: KafkaLease, nowMs: number): OwnedPartition {
  owned.watermark.defer(held.offset, nowMs, nowMs)
  owned.park(held, nowMs)
  return owned
}

/** A start that was the last, and the letter about it. */
export interface FinalFailure {
  readonly grant: KafkaLease
  readonly error: ErrorRecord
  readonly letter: NewRecord
}

export function toFinalFailure(
  grant: KafkaLease,
  error: ErrorRecord,
  about: { readonly group: string; readonly worker: string; readonly nowMs: number },
): FinalFailure {
  const { held, owned } = grant
  const { firstFailureMs } = owned.watermark.retryStateOf(held.offset)
  const letter = toDeadLetter({
    record: held.record,
    topicId: owned.topicId,
    error,
    starts: grant.attempt,
    group: about.group,
    workerType: grant.job.type,
    workerInstance: about.worker,
    firstFailureMs: firstFailureMs ?? about.nowMs,
    lastFailureMs: about.nowMs,
  })
  return { grant, error, letter }
}

/** Its letter could not be written: should this process end, the next owner writes it with the same error. */
export function keepCause({ grant, error }: FinalFailure, nowMs: number): OwnedPartition {
  grant.owned.watermark.fail(grant.held.offset, error, nowMs)
  return grant.owned
}

/** What is done with: the starts that are ours to finish, and those whose partition has moved meanwhile. */
export function writtenLeases(
  failures: readonly FinalFailure[],
  refused: ReadonlyMap<NewRecord, unknown>,
): { readonly here: readonly KafkaLease[]; readonly gone: readonly KafkaLease[] } {
  const grants = failures.filter(({ letter }) => !refused.has(letter)).map(({ grant }) => grant)
  return { here: grants.filter(({ owned }) => !owned.isLost), gone: grants.filter(({ owned }) => owned.isLost) }
}
