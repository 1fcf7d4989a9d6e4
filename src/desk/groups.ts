import type { DeadLetters, LetterCause, LetterCauses } from '../engine/dead-letters.ts'
import { fingerprint, normalise } from './fingerprint.ts'
import { diedAtMs, type Letter, type LetterFilter, pinned, type Selection } from './selection.ts'

/** The dead letters with one cause. */
export interface LetterGroup {
  readonly fingerprint: string
  readonly type: string
  readonly count: number
  /** The error without the parts that vary from letter to letter. */
  readonly error: string
  readonly oldestAtMs: number
  readonly newestAtMs: number
  /** The id of the newest letter. */
  readonly newestId: string
  /** The letters counted here, without those that die later. For `replayAll`, `discard` and `purge`. */
  readonly selection: LetterFilter
}

/** Dead letters by cause, the largest group first. */
export interface Causes {
  readonly groups: readonly LetterGroup[]
  /** Letters counted. */
  readonly seen: number
  /** False if counting was interrupted: counts are then lower bounds, and causes may be missing. */
  readonly complete: boolean
  /** The letters counted here, without those that die later. If interrupted: all letters that existed at the start. */
  readonly selection: Selection
}

/** Letters that a store has counted in one step. It reads an in-process store for about 4 ms. */
const COUNTED_PAGE = 2_000

type Counted = Omit<LetterCause, 'error'> & Pick<LetterGroup, 'fingerprint' | 'error'>

/** Letters by their errors, page by page: as the store counts them if it can, and otherwise each letter by itself. */
export async function* countedPages(
  deadLetters: DeadLetters,
  filter: LetterFilter,
  listed: () => AsyncIterable<readonly Letter[]>,
): AsyncGenerator<readonly Counted[]> {
  const { search, fingerprint: cause, limit, ...bounds } = filter
  // What only the desk can tell apart, it must see.
  if (deadLetters.causes === undefined || [search, cause, limit].some((part) => part !== undefined)) {
    for await (const page of listed()) yield page.map(countedLetter)
    return
  }
  let last: LetterCauses['last'] = null
  do {
    const page: LetterCauses = await deadLetters.causes({
      ...bounds,
      limit: COUNTED_PAGE,
      ...(last && { after: last }),
    })
    yield page.causes.map(counted)
    last = page.last
    // An in-process engine answers without I/O. Yield, so that timers and requests can run.
    await new Promise<void>((resolve) => setImmediate(resolve))
  } while (last !== null)
}

function counted({ error, ...cause }: LetterCause): Counted {
  const text = `${error.name}: ${normalise(error.message)}`
  return { ...cause, fingerprint: fingerprint(cause.type, error), error: text }
}

function countedLetter(letter: Letter): Counted {
  const { job, error } = letter
  const atMs = diedAtMs(letter)
  const text = `${error.name}: ${normalise(error.message)}`
  const cause = { fingerprint: letter.fingerprint, type: job.type, error: text }
  return { ...cause, count: 1, oldestAtMs: atMs, newestAtMs: atMs, newestId: job.id }
}

export async function groupLetters(
  pages: AsyncIterable<readonly Counted[]>,
  filter: LetterFilter,
  signal?: AbortSignal,
): Promise<Causes> {
  const groups = new Map<string, Counted>()
  let newestAtMs: number | undefined
  let [seen, complete] = [0, signal?.aborted !== true]
  for await (const page of complete ? pages : []) {
    for (const cause of page) {
      const known = groups.get(cause.fingerprint)
      groups.set(cause.fingerprint, known === undefined ? cause : together(known, cause))
      seen += cause.count
      newestAtMs = Math.max(newestAtMs ?? cause.newestAtMs, cause.newestAtMs)
    }
    complete = signal?.aborted !== true
    if (!complete) break
  }
  const sorted = [...groups.values()].sort((a, b) => b.count - a.count || b.newestAtMs - a.newestAtMs)
  return {
    groups: sorted.map((group) => ({ ...group, selection: selectionOf(group, filter, complete) })),
    ...{ seen, complete },
    selection: pinned(filter, newestAtMs, complete ? seen : null),
  }
}

function selectionOf({ type, fingerprint, newestAtMs, count }: Counted, filter: LetterFilter, complete: boolean) {
  const { sinceMs, search } = filter
  return {
    ...{ type, fingerprint },
    ...(sinceMs !== undefined && { sinceMs }),
    ...(search !== undefined && { search }),
    beforeMs: newestAtMs + 1,
    ...(complete && { limit: count }),
  }
}

function together(known: Counted, more: Counted): Counted {
  const isNewer = (more.newestAtMs - known.newestAtMs || (more.newestId > known.newestId ? 1 : 0)) > 0
  const newer = isNewer ? more : known
  return {
    ...newer,
    count: known.count + more.count,
    oldestAtMs: Math.min(known.oldestAtMs, more.oldestAtMs),
  }
}
