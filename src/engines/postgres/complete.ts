import type { Lease, Outcome, Settlement } from '../../engine/outcome.ts'
import { arrayOf } from './arrays.ts'
import type { Queries } from './database.ts'
import { fenceOf } from './rows.ts'
import { COMPLETE, COMPLETE_THERE } from './settle-statements.ts'

/** A job under one lease: an id alone would take a late holder for the present one. */
export interface Accepted {
  readonly id: string
  readonly token: string
  /** Whether others come after it. */
  readonly awaited: boolean
}

export function split<Item>(items: readonly Item[], isFirst: (item: Item) => boolean): [Item[], Item[]] {
  const [first, second]: [Item[], Item[]] = [[], []]
  for (const item of items) (isFirst(item) ? first : second).push(item)
  return [first, second]
}

interface Completing {
  readonly lease: Lease
  readonly outcome: Extract<Outcome, { kind: 'complete' }>
}

export async function complete(queries: Queries, given: readonly Settlement[]): Promise<readonly Accepted[]> {
  const done = given.flatMap(({ lease, outcome }) => (outcome.kind === 'complete' ? [{ lease, outcome }] : []))
  if (done.length === 0) return []
  const [bounded, plain] = split(done, ({ outcome }) => outcome.keep !== undefined)
  const { accepted, left } = plain.length === 0 ? { accepted: [], left: [] } : await completeThere(queries, plain)
  const others = [...bounded, ...left]
  return others.length === 0 ? accepted : [...accepted, ...(await completeById(queries, others))]
}

/** The hot path. A row that was renewed, or moved in any other way, is left to be looked for by its id. */
async function completeThere(
  queries: Queries,
  done: readonly Completing[],
): Promise<{ readonly accepted: readonly Accepted[]; readonly left: readonly Completing[] }> {
  const fences = done.map(({ lease }) => fenceOf(lease))
  const tokens = [...new Set(fences.map(({ token }) => token))]
  const numbers = new Map(tokens.map((token, index) => [token, index + 1]))
  const [answer] = await queries.rows<{ jobs: number; awaited: boolean; done: readonly number[] | null }>(
    COMPLETE_THERE,
    arrayOf(fences.map(({ place }) => place)),
    arrayOf(done.map(({ lease }) => lease.job.id)),
    arrayOf(done.map(({ outcome }) => outcome.result)),
    done.map(({ outcome }) => outcome.durationMs),
    fences.map(({ token }) => numbers.get(token) ?? 0),
    arrayOf(tokens),
    done.length,
  )
  const found = answer?.done == null ? null : new Set(answer.done)
  const isDone = (index: number): boolean => answer?.jobs === done.length || found?.has(index + 1) === true
  return {
    accepted: fences.flatMap(({ token }, index) => {
      const id = done[index]?.lease.job.id
      return id !== undefined && isDone(index) ? [{ id, token, awaited: answer?.awaited ?? false }] : []
    }),
    left: done.filter((_, index) => !isDone(index)),
  }
}

function completeById(queries: Queries, done: readonly Completing[]): Promise<readonly Accepted[]> {
  return queries.rows<Accepted>(
    COMPLETE,
    done.map(({ lease }) => lease.job.id),
    done.map(({ lease }) => fenceOf(lease).token),
    done.map(({ outcome }) => outcome.result),
    done.map(({ outcome }) => outcome.durationMs),
    done.map(({ outcome }) => outcome.keep !== undefined),
  )
}
