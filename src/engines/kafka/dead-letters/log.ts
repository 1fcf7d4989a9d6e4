/** What the desk of dead letters asks of a broker. The engine answers it; tests answer it from an array. */
import type { By } from '../../../engine/dead-letters.ts'
import type { Coordinates, LogRecord, NewRecord } from './record.ts'
import type { StateBook, StateRecord } from './states.ts'

export interface PartitionRange {
  readonly partition: number
  /** The oldest offset that is there. */
  readonly begin: bigint
  /** The offset that the next record gets. */
  readonly end: bigint
}

/** One act of an operator. Entries are only ever added. */
export interface DlqAudit {
  readonly atMs: number
  readonly action: 'replay' | 'discard' | 'release'
  /** Where the letter stands. */
  readonly at: Coordinates
  readonly letter: string
  readonly by: By
}

export interface DeadLetterLog {
  /** Empty for a topic that is not there. */
  partitions(topic: string): Promise<readonly PartitionRange[]>
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
  /** What the states' topic says, with everything that was acknowledged before the call. */
  states(): Promise<StateBook>
  appendStates(records: readonly StateRecord[]): Promise<void>
  audit(entries: readonly DlqAudit[]): Promise<void>
  /** Cuts a partition at its old end. */
  deleteBefore(topic: string, partition: number, offset: bigint): Promise<void>
}
