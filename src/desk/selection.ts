import type { AuditEntry, DeadLetter, DeadLetters } from '../engine/dead-letters.ts'
import type { Counts, Inspector } from '../engine/engine.ts'
import { OptionError } from '../errors.ts'
import type { JobEvent, JobView } from '../job/job.ts'
import { type OptionNames, omitUndefined, refuseUnknown } from '../job/known-options.ts'
import type { Redaction } from '../job/redaction.ts'
import { formatSearch, parseSearch } from '../job/search.ts'
import { matcherOf } from '../job/search-match.ts'
import type { Clock } from '../time/clock.ts'
import { fingerprint } from './fingerprint.ts'

export interface LetterFilter {
  readonly type?: string
  /** From `desk.groups()`. */
  readonly fingerprint?: string
  /** Such as `tag:import-7 error:ECONNREFUSED`; `since` and `until` are times of death. */
  readonly search?: string
  /** Died at this time or later. */
  readonly sinceMs?: number
  /** Died before this time. */
  readonly beforeMs?: number
  /** How many at most. For an act on many letters: acted on, so refused ones do not count. */
  readonly limit?: number
}

const FILTER_NAMES: OptionNames<LetterFilter> = {
  type: true,
  fingerprint: true,
  search: true,
  sinceMs: true,
  beforeMs: true,
  limit: true,
}

/** Letters by id, or all that match a filter. An empty filter matches every dead letter. */
export type Selection = LetterFilter | { readonly ids: readonly string[] }

export interface Letter extends DeadLetter {
  readonly fingerprint: string
}

export interface ShownLetter extends Letter {
  readonly history: readonly JobEvent[]
  /** The audit of this letter, newest first. */
  readonly audit: readonly AuditEntry[]
}

/** What an act on many needs to know of each: a dead letter, or any job that is to be erased. */
export interface Target {
  readonly job: Pick<JobView, 'id' | 'type' | 'completedAtMs' | 'updatedAtMs'> & {
    /** `gone`: only the audit knows it. `unknown`: not even that. */
    readonly state: JobView['state'] | 'gone' | 'unknown'
  }
}

export function toLetter(letter: DeadLetter): Letter {
  return { ...letter, fingerprint: fingerprint(letter.job.type, letter.error) }
}

export function checkFilter(filter: LetterFilter): LetterFilter {
  refuseUnknown(filter, FILTER_NAMES, 'a filter of dead letters')
  const { limit } = filter
  if (limit !== undefined && (!Number.isSafeInteger(limit) || limit < 1)) {
    throw new OptionError(`'limit' is ${limit}; give a whole number from 1, or leave it out`)
  }
  for (const name of ['sinceMs', 'beforeMs'] as const) {
    const ms = filter[name]
    if (ms !== undefined && !Number.isFinite(ms)) throw new OptionError(`'${name}' is ${ms}; give milliseconds`)
  }
  return filter
}

/**
 * The same filter with the times and the type of its search as bounds, which indexes serve. Times that count back from now
 * are times of the clock afterwards, so that it selects the same letters later.
 */
export function bounded<Chosen extends Selection>(selection: Chosen, clock: Clock): Chosen | LetterFilter {
  if ('ids' in selection) return selection
  const { search, ...rest } = checkFilter(selection)
  if (search === undefined) return selection
  const { sinceMs, untilMs, ...terms } = parseSearch(search, clock.nowMs())
  const text = formatSearch(terms)
  return {
    ...omitUndefined({ type: terms.type }),
    ...rest,
    ...(text !== '' && { search: text }),
    ...(sinceMs !== undefined && { sinceMs: Math.max(sinceMs, rest.sinceMs ?? sinceMs) }),
    ...(untilMs !== undefined && { beforeMs: Math.min(untilMs, rest.beforeMs ?? untilMs) }),
  }
}

/** A test for the letters of a filter that is `bounded`: what the store does not filter by. */
export function letterMatcher(
  { fingerprint, search }: LetterFilter,
  redaction: Redaction,
): (letter: Letter) => boolean {
  const matches = search === undefined ? null : matcherOf(parseSearch(search, 0), redaction)
  return (letter) =>
    (fingerprint === undefined || letter.fingerprint === fingerprint) && (matches === null || matches(letter.job))
}

export function diedAtMs({ job }: Target): number {
  return job.completedAtMs ?? job.updatedAtMs
}

/**
 * The same selection without letters that die later. `newestAtMs` is when the newest letter found died; `count` is how many
 * were found, or null if not all were counted. Letters are listed by time of death, so the time of the newest one excludes
 * later ones. The count bounds what a machine whose clock is behind could add.
 */
export function pinned(selection: Selection, newestAtMs: number | undefined, count: number | null): Selection {
  if ('ids' in selection) return selection
  // Matches nothing, now and later.
  if (newestAtMs === undefined) return { ...selection, beforeMs: 0 }
  return { ...selection, beforeMs: newestAtMs + 1, ...(count !== null && { limit: count }) }
}

/**
 * The letters of a selection, newest first, page by page. A letter that is replayed and dies again meanwhile is newer than
 * the following pages, so it is not returned twice.
 */
export async function* pagesOf(
  deadLetters: DeadLetters,
  selection: Selection,
  pageMax: number,
  redaction: Redaction,
): AsyncGenerator<readonly Letter[]> {
  if ('ids' in selection) refuseUnknown(selection, { ids: true }, 'a selection by ids')
  if ('ids' in selection) yield* named(deadLetters, selection.ids, pageMax)
  else yield* filtered(deadLetters, checkFilter(selection), pageMax, letterMatcher(selection, redaction))
}

async function* named(deadLetters: DeadLetters, ids: readonly string[], pageMax: number) {
  const distinct = [...new Set(ids)]
  for (let from = 0; from < distinct.length; from += pageMax) {
    yield (await deadLetters.list({ ids: distinct.slice(from, from + pageMax) })).map(toLetter)
  }
}

/** How many letters there are, if that can be known: counting by fingerprint or time would read everything twice. */
export async function totalOf(selection: Selection, counts?: () => Promise<Counts>): Promise<number | null> {
  if ('ids' in selection) return new Set(selection.ids).size
  const { type, fingerprint, search, sinceMs, beforeMs, limit = Number.POSITIVE_INFINITY } = selection
  // The selection of a dry run or a group: its limit is its count.
  if (beforeMs !== undefined && Number.isFinite(limit)) return limit
  if ([fingerprint, search, sinceMs, beforeMs].some((bound) => bound !== undefined)) return null
  const found = await counts?.()
  if (found === undefined) return null
  const dead = Object.entries(found).filter(([name]) => type === undefined || name === type)
  return Math.min(
    limit,
    dead.reduce((sum, [, { dead: count }]) => sum + count, 0),
  )
}

/** Jobs by id in whatever state, also those that are gone. */
export async function* jobsOf(
  { deadLetters, inspector }: { readonly deadLetters: DeadLetters; readonly inspector: Inspector },
  ids: readonly string[],
  pageMax: number,
): AsyncGenerator<readonly Target[]> {
  const distinct = [...new Set(ids)]
  for (let from = 0; from < distinct.length; from += pageMax) {
    const page = distinct.slice(from, from + pageMax)
    const views = await inspector.find(page)
    const targets: Target[] = []
    for (const [index, id] of page.entries()) {
      const job = views[index] ?? null
      targets.push(job === null ? await targetWithoutJob(deadLetters, id) : { job })
    }
    yield targets
  }
}

async function targetWithoutJob(deadLetters: DeadLetters, id: string): Promise<Target> {
  const [entry] = await deadLetters.audit({ jobId: id, limit: 1 })
  const state = entry === undefined ? 'unknown' : 'gone'
  return { job: { id, type: entry?.type ?? '', state, completedAtMs: null, updatedAtMs: 0 } }
}

async function* filtered(
  deadLetters: DeadLetters,
  filter: LetterFilter,
  pageMax: number,
  matches: (letter: Letter) => boolean,
) {
  const { fingerprint: _, search: __, limit = Number.POSITIVE_INFINITY, ...bounds } = filter
  let left = limit
  let after: { readonly completedAtMs: number; readonly id: string } | undefined
  while (left > 0) {
    const page = await deadLetters.list({ ...bounds, limit: pageMax, ...(after && { after }) })
    const letters = page.map(toLetter).filter(matches)
    const taken = letters.slice(0, left)
    left -= taken.length
    if (taken.length > 0) yield taken
    const last = page.at(-1)?.job
    if (last === undefined || page.length < pageMax) return
    after = { completedAtMs: last.completedAtMs ?? 0, id: last.id }
    // An in-process engine answers without I/O. Yield, so that timers and requests can run.
    await new Promise<void>((resolve) => setImmediate(resolve))
  }
}
