import { lookupOf } from '../engine/capability-checks.ts'
import type { Engine } from '../engine/engine.ts'
import { searchJobs } from '../engine/search-jobs.ts'
import type { AnyJob } from '../job/definition.ts'
import type { JobView } from '../job/job.ts'
import { refuseUnknown } from '../job/known-options.ts'
import { checkListLimit } from '../job/list-limit.ts'
import { Redaction } from '../job/redaction.ts'
import { parseSearch } from '../job/search.ts'
import type { Clock } from '../time/clock.ts'

export interface SearchOptions {
  /** How many jobs at most. Default: 100. */
  readonly limit?: number
  /** The `next` of the page before. */
  readonly before?: string
}

/** One page of a search. */
export interface FoundJobs {
  readonly jobs: readonly JobView[]
  /** Where the next page begins; null when there is nothing more to look at. A page may have few jobs, or none, and go on. */
  readonly next: string | null
  /** How many jobs were looked at for this page. */
  readonly looked: number
  /** All jobs that are newer were looked at; null where the store does not have them in the order of time. */
  readonly reachedMs: number | null
}

interface SearchedMill {
  readonly engine: Engine
  readonly clock: Clock
  readonly definitions: Iterable<AnyJob>
}

export async function search(mill: SearchedMill, text: string, options: SearchOptions): Promise<FoundJobs> {
  refuseUnknown(options, { limit: true, before: true }, 'search')
  const { engine, clock, definitions } = mill
  const { limit = 100, before } = options
  const page = { limit: checkListLimit(limit), before, clock, redaction: new Redaction([...definitions]) }
  const { items, ...rest } = await searchJobs(lookupOf(engine), parseSearch(text, clock.nowMs()), page)
  return { jobs: items, ...rest }
}
