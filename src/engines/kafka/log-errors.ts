/** What can be wrong with a partition's log, for operators. */
import { EngineError } from '../../errors.ts'
import { type Holding, nameOf } from './holding.ts'
import { TRIALS_MAX } from './watermark.ts'

/** Retention has removed what was to be read next. */
export function deletedRecords(holding: Holding, start: bigint): EngineError {
  const text = `records of ${nameOf(holding)} from offset ${holding.fetchedTo} on are deleted; going on at ${start}`
  return new EngineError('ERR_STORAGE_FAILED', `${text}; is the retention of the topic too short?`)
}

/** The topic is the same and its log is shorter than what was read of it. */
export function shorterLog(
  holding: Holding,
  { start, end }: { readonly start: bigint; readonly end: bigint },
): EngineError {
  const text = `the log of ${nameOf(holding)} ends at ${end}, though it was read up to ${holding.fetchedTo}`
  return new EngineError('ERR_STORAGE_FAILED', `${text}; reading it from its beginning, ${start}`)
}

export function recreatedTopic({ topic, partition }: Holding): EngineError {
  const text = `${topic} was deleted and created again; reading its partition ${partition} from the beginning`
  return new EngineError('ERR_STORAGE_FAILED', `${text}. What was not settled of the deleted topic is gone`)
}

export function fullOfRetries(holding: Holding): EngineError {
  const text = `${TRIALS_MAX} or more records of ${nameOf(holding)} wait for a retry`
  const advice = 'no other record of the partition is started until one of them is settled; see why they fail'
  return new EngineError('ERR_STORAGE_BUSY', `${text}: ${advice}`)
}
