import type { JobView } from '../job/job.ts'
import { omitUndefined } from '../job/known-options.ts'
import type { Redaction } from '../job/redaction.ts'
import type { JobSearch } from '../job/search.ts'
import { matcherOf } from '../job/search-match.ts'
import { isUlid } from '../job/ulid.ts'
import type { Clock } from '../time/clock.ts'
import type { Lookup } from './engine.ts'
import { type Scanned, type Step, scan } from './scan.ts'

export interface SearchPage {
  readonly limit: number
  /** The `next` of the page before. */
  readonly before?: string | undefined
  readonly clock: Clock
  readonly redaction: Redaction
}

/**
 * One page of the jobs that a search looks for, newest first. A page ends early when enough jobs were looked at; its `next`
 * then goes on, and no job is met twice or left out.
 */
export async function searchJobs(
  lookup: Lookup,
  search: JobSearch,
  { limit, before, clock, redaction }: SearchPage,
): Promise<Scanned<JobView, string>> {
  const matches = matcherOf(search, redaction)
  const exact = before === undefined ? await byId(lookup, search) : null
  if (exact !== null) {
    const items = exact.filter((job) => search.id === undefined || matches(job))
    return { items, next: null, looked: exact.length, reachedMs: null }
  }
  return scan<JobView, string>({
    clock,
    limit,
    from: before ?? null,
    step: (after, max) => stepOf(lookup, search, { before: after ?? undefined, max }),
    placeOf: ({ id }) => id,
    matches,
  })
}

/** The job that is named by its id, also without saying that it is one. Null if the search is another. */
async function byId(lookup: Lookup, search: JobSearch): Promise<readonly JobView[] | null> {
  const { id, tags, errors, payload, words, ...facts } = search
  const [word] = words
  const isLoneWord = words.length === 1 && [...tags, ...errors, ...payload, ...Object.keys(facts)].length === 0
  const wanted = id ?? (isLoneWord ? word : undefined)
  if (wanted === undefined) return null
  const [job = null] = await lookup.find([wanted])
  if (job !== null) return [job]
  return id === undefined ? null : []
}

async function stepOf(
  lookup: Lookup,
  search: JobSearch,
  { before, max }: { readonly before: string | undefined; readonly max: number },
): Promise<Step<JobView, string>> {
  const step = await (lookup.search?.(search, omitUndefined({ before, max })) ?? listed(lookup, search, before, max))
  const { sinceMs } = search
  const isPast = sinceMs !== undefined && step.reachedMs !== null && step.reachedMs < sinceMs
  return isPast ? { ...step, last: null } : step
}

/** For engines without a search of their own: all jobs of the type and state, one after the other. */
async function listed(
  lookup: Lookup,
  { type, state }: JobSearch,
  before: string | undefined,
  max: number,
): Promise<Step<JobView, string>> {
  const items = await lookup.list(omitUndefined({ type, state, before, limit: max }))
  const last = items.length < max ? null : (items.at(-1)?.id ?? null)
  return { items, looked: items.length, last, reachedMs: reachedBy(items) }
}

/** Lists are in the order of ids or arrival. That is the order of time but for clocks that differ, and ids of other programs. */
export const TAIL = 50
export const SKEW_MS = 60_000

/**
 * How far back a list in the order of ULIDs has come, given the last jobs of it: the newest of these, and earlier by how
 * much clocks may differ. Null if another program has chosen an id, whose place says nothing of its time.
 */
export function reachedBy(jobs: readonly { readonly id: string; readonly createdAtMs: number }[]): number | null {
  const tail = jobs.slice(-TAIL)
  if (tail.length === 0 || !jobs.every(({ id }) => isUlid(id))) return null
  const newestMs = Math.max(...tail.map(({ createdAtMs }) => createdAtMs))
  return Number.isFinite(newestMs) ? newestMs + SKEW_MS : null
}
