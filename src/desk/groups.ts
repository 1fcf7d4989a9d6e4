import { normalise } from './fingerprint.ts'
import { type Letter, type LetterFilter, pinned, type Selection } from './selection.ts'

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

type Counted = Omit<LetterGroup, 'selection'>

export async function groupLetters(
  pages: AsyncIterable<readonly Letter[]>,
  filter: LetterFilter,
  signal?: AbortSignal,
): Promise<Causes> {
  const groups = new Map<string, Counted>()
  let newest: Letter | undefined
  let [seen, complete] = [0, signal?.aborted !== true]
  for await (const page of complete ? pages : []) {
    newest ??= page[0]
    seen += page.length
    for (const letter of page) groups.set(letter.fingerprint, added(groups.get(letter.fingerprint), letter))
    complete = signal?.aborted !== true
    if (!complete) break
  }
  const sorted = [...groups.values()].sort((a, b) => b.count - a.count || b.newestAtMs - a.newestAtMs)
  return {
    groups: sorted.map((group) => ({ ...group, selection: selectionOf(group, filter, complete) })),
    ...{ seen, complete },
    selection: pinned(filter, newest, complete ? seen : null),
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

function added(group: Counted | undefined, { fingerprint, job, error }: Letter): Counted {
  const atMs = job.completedAtMs ?? job.updatedAtMs
  if (group !== undefined) return { ...group, count: group.count + 1, oldestAtMs: Math.min(group.oldestAtMs, atMs) }
  return {
    fingerprint,
    type: job.type,
    count: 1,
    error: `${error.name}: ${normalise(error.message)}`,
    oldestAtMs: atMs,
    newestAtMs: atMs,
    newestId: job.id,
  }
}
