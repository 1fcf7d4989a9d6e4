import type { Lease, Outcome, Settlement, Unstorable } from '../../engine/outcome.ts'
import type { Queries } from './database.ts'
import { arrayOf, arrayOfNumbers } from './driver.ts'
import { isRefusedText } from './faults.ts'
import { held, NOW, owned, rowsFrom, unleased } from './fragments.ts'
import type { Names } from './names.ts'
import { fenceOf } from './rows.ts'

const COMPLETED = `status = 'completed', result = given.result::json, duration_ms = round(given.duration_ms),
  completed_at = (SELECT ${NOW}), completed_by = locked_by, fail_code = NULL, fail_reason = NULL, error_record = NULL,
  ${unleased(`(SELECT ${NOW})`)}`

/**
 * Completes rows that are still where their claim put them, which is nearly all. Others are not found, and COMPLETE looks
 * for them by id. Returns one row: how many were completed, and which if not all.
 */
export const COMPLETE_THERE = ({ jobs }: Names): string => `
WITH done AS (
  UPDATE ONLY ${jobs} AS job SET bounded = false, ${COMPLETED}
  FROM ${rowsFrom('$2::tid[]', '$3::text[]', '$4::text[]', '$5::float8[]', '$6::int[]')}
    WITH ORDINALITY AS given (place, id, result, duration_ms, fence, nth)
  CROSS JOIN LATERAL (SELECT ($7::text[])[given.fence] AS token) AS fence
  WHERE job.ctid = given.place AND job.id::text = given.id AND ${owned('job', 'fence')}
    AND (job.status = 'processing' AND job.lease_expires_at > (SELECT ${NOW})) IS TRUE
  RETURNING given.nth, job.awaited)
SELECT count(*)::int AS jobs, coalesce(bool_or(awaited), false) AS awaited,
  CASE WHEN count(*) < $8::int THEN array_agg(nth::int) END AS done FROM done`

/** Completes the jobs whose tokens hold and returns their ids. */
export const COMPLETE = ({ jobs }: Names): string => `
UPDATE ${jobs} AS job SET bounded = given.bounded, ${COMPLETED}
FROM ${rowsFrom('$2::text[]', '$3::text[]', '$4::text[]', '$5::float8[]', '$6::boolean[]')}
  AS given (id, token, result, duration_ms, bounded)
WHERE ${held('job', 'given')}
RETURNING given.id, given.token, job.awaited`

/** The settlements that took no effect. */
export interface Applied<Item> {
  readonly refused: readonly Item[]
  /** Those whose text the server refused. */
  readonly unstorable: readonly Unstorable[]
  /** Whether other jobs come after one that took effect. */
  readonly awaited: boolean
}

export const NOTHING_APPLIED: Applied<never> = Object.freeze({ refused: [], unstorable: [], awaited: false })

export function joined<Item>(applied: readonly Applied<Item>[]): Applied<Item> {
  return {
    refused: applied.flatMap(({ refused }) => refused),
    unstorable: applied.flatMap(({ unstorable }) => unstorable),
    awaited: applied.some(({ awaited }) => awaited),
  }
}

/** Runs a statement for a batch. Inside a transaction a failure must end it, so there it runs unguarded. */
export type Guard = <Item extends Settlement>(
  given: readonly Item[],
  run: (given: readonly Item[]) => Promise<Applied<Item>>,
) => Promise<Applied<Item>>

export const unguarded: Guard = (given, run) => run(given)

/** A settlement whose text the server refuses must not fail the others of its statement: each is then tried alone. */
export const retryIndividually: Guard = async (given, run) => {
  try {
    return await run(given)
  } catch (error) {
    if (!isRefusedText(error)) throw error
    const [only, ...others] = given
    if (only === undefined) throw error
    if (others.length === 0) {
      return { ...NOTHING_APPLIED, unstorable: [{ lease: only.lease, reason: 'unstorable', error }] }
    }
    const applied: Applied<(typeof given)[number]>[] = []
    for (const one of given) applied.push(await retryIndividually([one], run))
    return joined(applied)
  }
}

/** A row that a statement changed. The id alone does not tell a late holder from the current one. */
export interface Accepted {
  readonly id: string
  readonly token: string
  readonly awaited: boolean
}

interface Completion extends Settlement {
  readonly outcome: Extract<Outcome, { kind: 'complete' }>
}

/** Copies nothing in the usual case that no item is first. */
export function split<Item>(
  items: readonly Item[],
  isFirst: (item: Item) => boolean,
): readonly [first: readonly Item[], second: readonly Item[]] {
  if (!items.some(isFirst)) return [[], items]
  return [items.filter(isFirst), items.filter((item) => !isFirst(item))]
}

export function isCompletion<Item extends Settlement>(item: Item): item is Item & Completion {
  return item.outcome.kind === 'complete'
}

/** Each settlement is accepted at most once, so equal counts mean all of them. */
export function appliedOf<Item extends Settlement>(
  given: readonly Item[],
  accepted: readonly Accepted[],
): Applied<Item> {
  const awaited = accepted.some((each) => each.awaited)
  if (accepted.length === given.length) return { ...NOTHING_APPLIED, awaited }
  const names = new Set(accepted.map(nameOf))
  return { ...NOTHING_APPLIED, refused: given.filter(({ lease }) => !names.has(nameOfLease(lease))), awaited }
}

export function nameOfLease(lease: Lease): string {
  return nameOf({ id: lease.job.id, token: fenceOf(lease).token })
}

export function nameOf({ id, token }: Pick<Accepted, 'id' | 'token'>): string {
  return `${token} ${id}`
}

export async function complete<Item extends Completion>(
  queries: Queries,
  done: readonly Item[],
  guard: Guard,
): Promise<Applied<Item>> {
  const [bounded, plain] = split(done, ({ outcome }) => outcome.keep !== undefined)
  const there: Applied<Item> =
    plain.length === 0 ? NOTHING_APPLIED : await guard(plain, (items) => completeThere(queries, items))
  const others = [...bounded, ...there.refused]
  if (others.length === 0) return there
  const byId = await guard(others, async (items) => appliedOf(items, await completeById(queries, items)))
  return joined([{ ...there, refused: [] }, byId])
}

/** The hot path. A row that moved, for example because it was renewed, is refused here and then looked for by id. */
async function completeThere<Item extends Completion>(queries: Queries, done: readonly Item[]): Promise<Applied<Item>> {
  const places: string[] = []
  const fences: number[] = []
  const numbers = new Map<string, number>()
  for (const { lease } of done) {
    const { token, place } = fenceOf(lease)
    places.push(place)
    let number = numbers.get(token)
    if (number === undefined) {
      number = numbers.size + 1
      numbers.set(token, number)
    }
    fences.push(number)
  }
  const [answer] = await queries.rows<{ jobs: number; awaited: boolean; done: readonly number[] | null }>(
    COMPLETE_THERE,
    arrayOf(places),
    arrayOf(done.map(({ lease }) => lease.job.id)),
    arrayOf(done.map(({ outcome }) => outcome.result)),
    arrayOfNumbers(done.map(({ outcome }) => outcome.durationMs)),
    arrayOfNumbers(fences),
    arrayOf([...numbers.keys()]),
    done.length,
  )
  const awaited = answer?.awaited ?? false
  if (answer?.jobs === done.length) return { ...NOTHING_APPLIED, awaited }
  const found = new Set(answer?.done)
  return { ...NOTHING_APPLIED, refused: done.filter((_, index) => !found.has(index + 1)), awaited }
}

function completeById(queries: Queries, done: readonly Completion[]): Promise<readonly Accepted[]> {
  return queries.rows<Accepted>(
    COMPLETE,
    done.map(({ lease }) => lease.job.id),
    done.map(({ lease }) => fenceOf(lease).token),
    done.map(({ outcome }) => outcome.result),
    done.map(({ outcome }) => outcome.durationMs),
    done.map(({ outcome }) => outcome.keep !== undefined),
  )
}
