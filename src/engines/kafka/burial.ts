import type { ErrorRecord } from '../../job/job.ts'
import { toDeadLetter } from './dead-letters/letter.ts'
import type { NewRecord } from './dead-letters/record.ts'
import type { Grip } from './leases.ts'

/** A start that was the last, and the letter about it. */
export interface Burial {
  readonly grip: Grip
  readonly letter: NewRecord
}

export function burialOf(
  grip: Grip,
  error: ErrorRecord,
  about: { readonly group: string; readonly worker: string; readonly nowMs: number },
): Burial {
  const { held, holding } = grip
  const { firstFailureMs } = holding.watermark.trialOf(held.offset)
  const letter = toDeadLetter({
    record: held.record,
    error,
    starts: grip.attempt,
    group: about.group,
    workerType: grip.job.type,
    workerInstance: about.worker,
    firstFailureMs: firstFailureMs ?? about.nowMs,
    lastFailureMs: about.nowMs,
  })
  return { grip, letter }
}

/** What is done with: the starts that are ours to finish, and those whose partition has moved meanwhile. */
export function written(
  buried: readonly Burial[],
  refused: ReadonlyMap<NewRecord, unknown>,
): { readonly here: readonly Grip[]; readonly gone: readonly Grip[] } {
  const grips = buried.filter(({ letter }) => !refused.has(letter)).map(({ grip }) => grip)
  return { here: grips.filter(({ holding }) => !holding.isLost), gone: grips.filter(({ holding }) => holding.isLost) }
}
