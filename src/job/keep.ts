import { OptionError } from '../errors.ts'
import { type Duration, parseDurationMs } from '../time/duration.ts'
import { type OptionNames, refuseUnknown } from './known-options.ts'

/**
 * True or 0: the job is removed when it finishes. A number: it is removed once that many newer ones of its type have
 * finished. False: it stays until retention.
 */
export type RemoveOption = boolean | number

/** What becomes of finished jobs when one of their type finishes; see `isBeyondKeepLimit` in engine/retention.ts. */
export interface Keep {
  /** 0: this job goes, and no other. Above: all but the newest so many of its type go. Absent: none goes. */
  readonly keep?: number
  /** The job's own number, and not its definition's: then only those go whose own stored options name a number. */
  readonly keepIsOwn?: boolean
}

/** Counting them costs a step of an index each, at every completion. */
export const KEEP_MAX = 10_000

/** Null: all stay. */
export function checkKeep(remove: RemoveOption, name: 'removeOnComplete' | 'removeOnFail'): number | null {
  if (typeof remove === 'boolean') return remove ? 0 : null
  if (Number.isInteger(remove) && remove >= 0 && remove <= KEEP_MAX) return remove
  throw new OptionError(
    `'${name}' is ${remove}; give true (keep none), false (keep all) or how many stay, from 0 to ${KEEP_MAX}; for more use retention by age`,
  )
}

/** Dead letters of a critical type are never removed automatically. */
export function checkKeepDead(remove: RemoveOption, job: { readonly type: string; readonly critical: boolean }) {
  const keep = checkKeep(remove, 'removeOnFail')
  if (keep === null || !job.critical) return keep
  throw new OptionError(
    `'removeOnFail' is set for '${job.type}', which is critical, so its dead letters are removed only by hand; leave one of the two out`,
  )
}

/** How long finished jobs stay. False: for ever. */
export interface Ages {
  readonly completed?: Duration | false
  /** Cancelled, superseded or discarded. */
  readonly ended?: Duration | false
  readonly dead?: Duration | false
}

/** The same in milliseconds. Null: for ever. A missing age falls back to the next policy. */
export type AgesMs = { readonly [What in keyof Ages]: number | null }

export const AGE_NAMES: OptionNames<Ages> = { completed: true, ended: true, dead: true }

export function checkAges({ completed, ended, dead }: Ages, name: string): AgesMs {
  const ages = { completed, ended, dead }
  const whats = ['completed', 'ended', 'dead'] as const
  return Object.fromEntries(
    whats.flatMap((what) => {
      const age = ages[what]
      if (age === undefined) return []
      return [[what, age === false ? null : parseDurationMs(age, `${name}.${what}`)]]
    }),
  )
}

export function checkRetention(ages: Ages, job: { readonly type: string; readonly critical: boolean }): AgesMs {
  refuseUnknown(ages, AGE_NAMES, `'retention'`)
  const agesMs = checkAges(ages, 'retention')
  if (!job.critical || agesMs.dead === undefined || agesMs.dead === null) return agesMs
  throw new OptionError(
    `'retention.dead' is set for '${job.type}', which is critical, so its dead letters are removed only by hand; leave one of the two out`,
  )
}

const KEEPS_ALL: Keep = Object.freeze({})

/** The job's own limit overrides its definition's. A stored value that is not a valid limit keeps all. */
export function keepOf(own: unknown, defined: number | null): Keep {
  if (own === undefined) return defined === null ? KEEPS_ALL : { keep: defined }
  const isBound = typeof own === 'number' && Number.isInteger(own) && own >= 0 && own <= KEEP_MAX
  return isBound ? { keep: own, keepIsOwn: true } : KEEPS_ALL
}
