import { EngineError } from '../../errors.ts'
import type { Clock } from '../../time/clock.ts'
import { within as waitWithin } from '../../time/wait.ts'
import type { OwnedPartition } from './owned-partition.ts'
import { nameOf } from './record.ts'
import { RETRIES_MAX } from './watermark.ts'

/** Retention has removed what was to be read next. */
export function deletedRecords(owned: OwnedPartition, start: bigint): EngineError {
  const text = `records of ${nameOf(owned)} from offset ${owned.fetchedTo} on are deleted; going on at ${start}`
  return new EngineError('ERR_STORAGE_FAILED', `${text}; is the retention of the topic too short?`)
}

/** The topic is the same and its log is shorter than what was read of it. */
export function shorterLog(
  owned: OwnedPartition,
  { start, end }: { readonly start: bigint; readonly end: bigint },
): EngineError {
  const text = `the log of ${nameOf(owned)} ends at ${end}, though it was read up to ${owned.fetchedTo}`
  return new EngineError('ERR_STORAGE_FAILED', `${text}; reading it from its beginning, ${start}`)
}

export function recreatedTopic({ topic, partition }: OwnedPartition): EngineError {
  const text = `${topic} was deleted and created again; reading its partition ${partition} from the beginning`
  return new EngineError('ERR_STORAGE_FAILED', `${text}. What was not settled of the deleted topic is gone`)
}

export function fullOfRetries(owned: OwnedPartition): EngineError {
  const text = `${RETRIES_MAX} or more records of ${nameOf(owned)} wait for a retry`
  const advice = 'no other record of the partition is started until one of them is settled; see why they fail'
  return new EngineError('ERR_STORAGE_BUSY', `${text}: ${advice}`)
}

/** The result of `work`, if it comes within `ms`. The client itself would wait much longer for an unreachable broker. */
export function within<Value>(
  clock: Clock,
  ms: number,
  work: Promise<Value>,
  what = 'is the broker there?',
): Promise<Value> {
  const late = (): Error =>
    new EngineError('ERR_STORAGE_BUSY', `Kafka has not answered within ${Math.round(ms)} ms; ${what}`)
  return waitWithin(clock, ms, late, () => work)
}

/** Whether the leases still hold is unknown: they can be neither used nor reported lost. */
export function unheard(): EngineError {
  return new EngineError(
    'ERR_STORAGE_BUSY',
    'no heartbeat was answered for a whole session, so it is unknown which leases hold; try again',
  )
}
