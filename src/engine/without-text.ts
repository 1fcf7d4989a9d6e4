import { MillraceError } from '../errors.ts'
import type { ErrorRecord } from '../job/job.ts'
import type { Lease, Outcome } from './outcome.ts'

const NO_RESULT: ErrorRecord = {
  name: 'ResultError',
  code: 'ERR_STORAGE_REFUSED',
  message: 'the store refused the text of the result; the work was done, so it is not retried',
  stack: null,
}

const NO_ERROR: ErrorRecord = {
  name: 'Error',
  code: 'ERR_STORAGE_REFUSED',
  message: `the store refused the text of this error; the worker's log has it`,
  stack: null,
}

/**
 * An outcome that every store can keep, for one whose text it refused: a failure stays what it is and loses its words. A
 * completion becomes a dead letter, because whoever waits for the result must not be given another one.
 */
export function withoutText(outcome: Outcome): Outcome {
  switch (outcome.kind) {
    case 'complete':
      return { kind: 'dead', error: NO_RESULT }
    case 'retry':
    case 'dead':
      return { ...outcome, error: NO_ERROR }
    case 'release':
      return { ...outcome, reason: 'released' }
    default:
      return outcome satisfies never
  }
}

/** What to tell about it. It names what the store will not: an error's own words, never a result. */
export function refusedText({ job }: Lease, outcome: Outcome, cause: unknown): MillraceError {
  const lost = outcome.kind === 'retry' || outcome.kind === 'dead' ? `: ${outcome.error.message}` : ''
  return new MillraceError(
    'ERR_STORAGE_REFUSED',
    `the store refused the text of the outcome '${outcome.kind}' of job ${job.id}, which is stored without it${lost}`,
    { cause },
  )
}
