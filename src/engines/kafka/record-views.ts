import type { JobView } from '../../job/job.ts'
import { tagsOf } from '../../job/tags.ts'
import { readReplayHeaders } from './dead-letters/headers.ts'
import { viewOf as letterView } from './dead-letters/letter.ts'
import type { FoundLetter } from './dead-letters.ts'
import { type GroupPlace, phaseOf } from './group-places.ts'
import { targetGroupOf, toJob } from './job-record.ts'
import { type Coordinates, type LogRecord, nameOf } from './record.ts'

export interface ViewParts {
  /** Whose view it is. */
  readonly group: string
  readonly place: GroupPlace
  /** What the record has died with, if it has. */
  readonly letter: FoundLetter | undefined
  /** Who holds the partition now. */
  readonly holder: string | null
  readonly prefix: string
  readonly nowMs: number
}

/** Names a record by where it stands, whatever job it is. No topic has a slash. */
export function placeId({ topic, partition, offset }: Coordinates): string {
  return `${nameOf({ topic, partition })}/${offset}`
}

export function isSettled({ position, finished }: GroupPlace, offset: number): boolean {
  return offset < position || finished.some(([from, to]) => offset >= from && offset < to)
}

/**
 * A record as a job, from what the group has committed and its dead letters. When it ran, how often it was started before
 * it was settled, and with what result is kept nowhere: such fields are null, and the attempt is 0.
 */
export function recordView(record: LogRecord, { group, place, letter, holder, prefix, nowMs }: ViewParts): JobView {
  const { job } = toJob(record, prefix)
  const target = targetGroupOf(record)
  const isForOthers = target !== null && target !== group
  const plain: JobView = {
    ...job,
    // A replay for another group is no job of this one, which still has the first record under that id.
    ...(isForOthers && { id: placeId(record) }),
    ...{ state: 'queued', attempt: 0, progress: null, result: null, error: null },
    ...{ leaseOwner: null, leaseUntilMs: null, startedAtMs: null, completedAtMs: null, durationMs: null },
    tags: tagsOf(job.options),
    replays: readReplayHeaders(record.headers).count,
    updatedAtMs: record.timestampMs,
  }
  const offset = Number(record.offset)
  if (isSettled(place, offset))
    return letter === undefined ? { ...plain, state: 'completed' } : deadView(letter, prefix)
  const retryState = place.retryStates.get(offset)
  if (retryState === undefined) return plain
  const { starts: attempt, dueMs, failure } = retryState
  const phase = phaseOf(retryState, nowMs)
  // Its letter could not be written yet: it neither runs nor waits.
  if (failure !== undefined) return { ...plain, state: 'failed', attempt, error: failure }
  if (phase === 'started') return { ...plain, state: 'in_progress', attempt, leaseOwner: holder }
  return { ...plain, attempt, runAtMs: dueMs > 0 ? dueMs : plain.runAtMs }
}

/** A replay is a record of its own, and the job that this one was. */
export function deadView({ id, letter, state }: FoundLetter, prefix: string): JobView {
  const view = { ...letterView(letter, state, prefix), id }
  switch (state.state) {
    case 'pending':
    case 'claimed':
    case 'discarded':
      return view
    case 'removed':
      return { ...view, state: 'discarded' }
    case 'replayed':
      return { ...view, id: placeId(letter.failed()), state: 'superseded' }
    default:
      return state.state satisfies never
  }
}
