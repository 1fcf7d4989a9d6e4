/** Which finished jobs `removeOnComplete` and `removeOnFail` give up when others of their type finish. */
import type { Outcome, Settlement } from '../../engine/outcome.ts'
import { isBeyondKeepLimit } from '../../engine/retention.ts'
import type { StoredOptions } from '../../job/job.ts'

type Limited = Extract<Outcome, { kind: 'complete' | 'dead' }> & { readonly keep: number }

export type FinishedAs = 'completed' | 'dead'

export interface KeepLimit {
  readonly what: FinishedAs
  readonly type: string
  readonly keep: number
  readonly keepIsOwn: boolean
  /** How many jobs beyond the limit to look at. The first time a type is limited there may be a million. */
  readonly max: number
}

interface KeepLimits {
  /** Ids of jobs that are not kept at all. */
  readonly unkept: Readonly<Record<FinishedAs, readonly string[]>>
  readonly limits: readonly KeepLimit[]
}

/** Jobs looked at for each settle beside the number it added, so that a long backlog shrinks over time. */
const OLDER_MAX = 100

export function hasKeepLimit(outcome: Outcome): outcome is Limited {
  return (outcome.kind === 'complete' || outcome.kind === 'dead') && outcome.keep !== undefined
}

/** Of several limits from one origin for one type, the last counts. */
export function keepLimitsOf(applied: readonly Settlement[]): KeepLimits {
  const limits = new Map<string, KeepLimit>()
  const unkept: Record<FinishedAs, string[]> = { completed: [], dead: [] }
  for (const { lease, outcome } of applied) {
    if (!hasKeepLimit(outcome)) continue
    const { type, id } = lease.job
    const { keep, keepIsOwn = false } = outcome
    const what = outcome.kind === 'complete' ? 'completed' : 'dead'
    if (keep === 0) {
      unkept[what].push(id)
      continue
    }
    const name = `${what} ${keepIsOwn} ${type}`
    limits.set(name, { what, type, keep, keepIsOwn, max: (limits.get(name)?.max ?? OLDER_MAX) + 1 })
  }
  return { unkept, limits: [...limits.values()] }
}

/** Whether the limit gives up a job that is older than `keep + index` others of its type. */
export function givesUp(limit: KeepLimit, options: StoredOptions | null, index: number): boolean {
  const own = limit.what === 'completed' ? options?.keepCompleted : options?.keepDead
  return isBeyondKeepLimit(own, limit.keep + index, limit)
}
