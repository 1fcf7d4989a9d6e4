import { normalise } from './fingerprint.ts'
import type { Letter } from './selection.ts'

/** The dead letters of one cause. */
export interface LetterGroup {
  readonly fingerprint: string
  readonly type: string
  readonly count: number
  /** The error without what varies from letter to letter. */
  readonly error: string
  readonly oldestAtMs: number
  readonly newestAtMs: number
  /** The newest one's id, to look at. */
  readonly newestId: string
}

/** The largest group first. */
export async function groupLetters(pages: AsyncIterable<readonly Letter[]>): Promise<readonly LetterGroup[]> {
  const groups = new Map<string, LetterGroup>()
  for await (const page of pages) {
    for (const letter of page) groups.set(letter.fingerprint, added(groups.get(letter.fingerprint), letter))
  }
  return [...groups.values()].sort((a, b) => b.count - a.count || b.newestAtMs - a.newestAtMs)
}

function added(group: LetterGroup | undefined, { fingerprint, job, error }: Letter): LetterGroup {
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
