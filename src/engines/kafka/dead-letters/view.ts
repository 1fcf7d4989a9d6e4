import type { ErrorRecord, JobView } from '../../../job/job.ts'
import { fromIso } from '../../../time/iso.ts'
import { toJob } from '../record.ts'
import type { TopicLetter } from './letter.ts'
import { DLQ_SUFFIX } from './record.ts'
import type { StateView } from './states.ts'

/** When it failed for the last time, by the clock of its worker. */
export function diedAtMs({ envelope, deadAtMs }: TopicLetter): number {
  const ms = fromIso(envelope.last_failure_at)
  return Number.isNaN(ms) ? deadAtMs : ms
}

/** The topic whose job it was, also where the letter does not say so. */
export function topicOf({ envelope, at }: TopicLetter): string {
  return envelope.original_topic === '' ? at.topic.slice(0, -DLQ_SUFFIX.length) : envelope.original_topic
}

export function jobIdOf(letter: TopicLetter): string {
  return toJob(letter.failed()).job.id
}

export function errorOf({ envelope }: TopicLetter): ErrorRecord {
  const { exception_class: name, message, stack_trace: stack } = envelope.error_details
  return { name, code: envelope.error_code ?? null, message, stack: stack === '' ? null : stack }
}

/** The job that a letter is about, as every engine shows one. */
export function viewOf(letter: TopicLetter, state: StateView, prefix: string): JobView {
  const record = letter.failed()
  const attempt = letter.envelope.retry_count + 1
  const { job } = toJob(record, prefix, attempt)
  const diedMs = diedAtMs(letter)
  return {
    ...job,
    type: topicOf(letter).slice(prefix.length),
    state: 'dead_letter',
    ended: state.state === 'discarded' ? 'discarded' : null,
    attempt,
    replays: letter.envelope.replay_count,
    progress: null,
    result: null,
    error: errorOf(letter),
    leaseOwner: null,
    leaseUntilMs: null,
    updatedAtMs: state.sinceMs ?? diedMs,
    startedAtMs: null,
    completedAtMs: diedMs,
    durationMs: null,
  }
}
