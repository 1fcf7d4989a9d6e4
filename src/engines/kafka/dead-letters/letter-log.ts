/**
 * What dead letters need of a broker. Tests implement it with arrays. It stays apart from its implementation because public
 * types lead here, and they must not need the types of the Kafka client.
 */
import type { LogRecord, NewRecord } from '../record.ts'
import type { AuditedAct, DlqAudit } from './audit.ts'
import type { StateBook, StateRecord } from './states.ts'

export interface PartitionRange {
  readonly partition: number
  /** The oldest offset that is there. */
  readonly begin: bigint
  /** The offset that the next record gets. */
  readonly end: bigint
}

export interface LetterLog {
  /** By topic. One that is not there has none. */
  partitions(topics: readonly string[]): Promise<ReadonlyMap<string, readonly PartitionRange[]>>
  /**
   * Records from `from` on, below `to`, at most `max`, in the order of their offsets. Offsets may have gaps, so fewer
   * than `max` does not mean the end; an empty answer does.
   */
  readRange(
    topic: string,
    partition: number,
    range: { readonly from: bigint; readonly to: bigint; readonly max: number },
  ): Promise<readonly LogRecord[]>
  /** Resolves when all replicas have it, in the order given. A rejection means: perhaps written. */
  produce(records: readonly NewRecord[]): Promise<void>
  /** What the states' topic says, with everything that was acknowledged before the call. It may learn of more later. */
  states(): Promise<StateBook>
  /** States and audit entries stand in one partition: a call writes all of them or none, and nothing in between. */
  write(states: readonly StateRecord[], audit?: readonly DlqAudit[]): Promise<void>
  /** Newest first. */
  audited(before?: number): AsyncIterable<AuditedAct>
  /** Cuts a partition at its old end. */
  deleteBefore(topic: string, partition: number, offset: bigint): Promise<void>
}
