import type { AuditFilter } from '../engine/dead-letters.ts'
import type { Engine } from '../engine/engine.ts'
import type { AnyJob } from '../job/definition.ts'
import type { OptionNames } from '../job/known-options.ts'
import type { Clock } from '../time/clock.ts'

/** What a desk needs of an engine. Without `counts`, bulk acts do not know their total. */
export type DeskStore = Pick<Engine, 'name' | 'deadLetters'> & Partial<Pick<Engine, 'counts' | 'inspector'>>

export interface DeskOptions {
  /** Edited payloads are checked against these definitions, and `critical` ones are protected from purging. */
  readonly jobs?: readonly AnyJob[]
  /** More types that `purge` refuses without `force`. */
  readonly critical?: readonly string[]
  /** How often a letter can be replayed without `force`. Default: 3. */
  readonly replaysMax?: number
  readonly payloadBytesMax?: number
  readonly clock?: Clock
}

export const DESK_NAMES: OptionNames<DeskOptions> = {
  jobs: true,
  critical: true,
  replaysMax: true,
  payloadBytesMax: true,
  clock: true,
}

export const AUDIT_NAMES: OptionNames<AuditFilter> = {
  jobId: true,
  who: true,
  action: true,
  limit: true,
  before: true,
}
