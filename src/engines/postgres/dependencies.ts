import { type Receipt, SUCCESSORS_SEARCHED } from '../../engine/engine.ts'
import { UnknownJobError } from '../../errors.ts'
import type { NewJob } from '../../job/job.ts'
import { redirect } from '../../job/predecessors.ts'
import type { Queries } from './database.ts'
import { lockOrder, NOW, rowsFrom } from './fragments.ts'
import type { Names } from './names.ts'

export const FIND_IDS = ({ jobs }: Names): string =>
  `SELECT id::text AS id, ${NOW} AS now FROM ${jobs} WHERE id::text = ANY ($2::text[])`

/** The lock keeps the end of a predecessor before or after the link, never in between. */
export const AWAIT = ({ jobs }: Names): string => `
UPDATE ${jobs} AS job SET awaited = true FROM (
  SELECT id FROM ${jobs} AS one WHERE id::text = ANY ($2::text[]) AND ${NOW} IS NOT NULL ORDER BY ${lockOrder('one')} FOR UPDATE) AS first
WHERE job.id = first.id`

/** A predecessor that was removed holds no job back. */
export const LINK = ({ jobs, edges }: Names): string => `
INSERT INTO ${edges} (job_id, after_id, if_dead, held)
SELECT given.job_id, given.after_id, given.if_dead, coalesce(
  first.status IN ('queued', 'processing') OR (first.status = 'failed' AND first.ended IS NULL AND given.if_dead = 'wait'), false)
FROM ${rowsFrom('$2::text[]', '$3::text[]', '$4::text[]')} AS given (job_id, after_id, if_dead)
LEFT JOIN ${jobs} AS first ON first.id::text = given.after_id
WHERE ${NOW} IS NOT NULL`

export const HOLD_BACK = ({ jobs, edges }: Names): string => `
UPDATE ${jobs} AS job SET after = given.after::json,
  waiting_for = (SELECT count(*) FROM ${edges} AS edge WHERE edge.job_id = given.id AND edge.held)
FROM ${rowsFrom('$2::text[]', '$3::text[]')} AS given (id, after) WHERE job.id::text = given.id AND ${NOW} IS NOT NULL`

/** A condition on `job`: a job that may still run, or be replayed, comes after it and will need its result. */
export function isAwaited({ edges }: Names): string {
  return `(job.awaited AND EXISTS (SELECT 1 FROM ${edges} AS edge WHERE edge.after_id = job.id::text))`
}

/** Those that may still run have edges; those that are over are looked for among the next jobs, if the job ever had one. */
export const SUCCESSORS = ({ jobs, edges }: Names): string => `
SELECT edge.job_id AS id, ${NOW} AS now FROM ${edges} AS edge WHERE edge.after_id = ANY ($2::text[])
UNION SELECT later.id, ${NOW} AS now FROM (
  SELECT job.id::text AS id, job.after FROM ${jobs} AS job WHERE job.id::text > $3
    AND EXISTS (SELECT 1 FROM ${jobs} AS first WHERE first.id::text = ANY ($2::text[]) AND first.awaited)
  ORDER BY job.id::text LIMIT ${SUCCESSORS_SEARCHED}) AS later
WHERE later.after IS NOT NULL AND (later.after::jsonb -> 'ids') ?| $2::text[]`

export function successorsOf(queries: Queries, ids: readonly string[]): Promise<readonly { readonly id: string }[]> {
  return queries.rows<{ id: string }>(SUCCESSORS, ids, [...ids].sort()[0] ?? '')
}

type FindKnown = (queries: Queries, jobs: readonly NewJob[]) => Promise<readonly (string | null)[]>

/**
 * Throws before anything of the batch is stored, so that the caller's transaction stays as it was. A job may come only
 * after jobs that precede it in the batch, so a batch cannot contain a cycle.
 */
export async function refuseUnknown(queries: Queries, jobs: readonly NewJob[], findKnown: FindKnown): Promise<void> {
  const wanted = new Set(jobs.flatMap(({ after }) => after?.ids ?? []))
  if (wanted.size === 0) return
  const stored = new Set((await queries.rows<{ id: string }>(FIND_IDS, [...wanted])).map(({ id }) => id))
  const before = new Set<string>()
  for (const job of jobs) {
    const unknown = job.after?.ids.find((id) => !before.has(id) && !stored.has(id))
    if (unknown !== undefined) {
      const [known] = await findKnown(queries, [job])
      if (known === null || known === undefined) throw new UnknownJobError(unknown)
    }
    before.add(job.id)
  }
}

/** Links new jobs to their predecessors, in the transaction that stored them. Triggers do the rest when a job ends. */
export async function link(queries: Queries, jobs: readonly NewJob[], receipts: readonly Receipt[]): Promise<void> {
  if (jobs.every(({ after }) => after === null)) return
  const duplicates = new Map<string, string>()
  const linked: { readonly id: string; readonly after: NonNullable<NewJob['after']> }[] = []
  for (const [index, job] of jobs.entries()) {
    const receipt = receipts[index]
    if (receipt?.status === 'duplicate') duplicates.set(job.id, receipt.id)
    else if (job.after !== null) linked.push({ id: job.id, after: redirect(job.after, duplicates) })
  }
  if (linked.length === 0) return
  const edges = linked.flatMap(({ id, after }) => after.ids.map((first) => ({ id, first, ifDead: after.ifDead })))
  await queries.rows(AWAIT, [...new Set(edges.map(({ first }) => first))])
  await queries.rows(
    LINK,
    edges.map(({ id }) => id),
    edges.map(({ first }) => first),
    edges.map(({ ifDead }) => ifDead),
  )
  await queries.rows(
    HOLD_BACK,
    linked.map(({ id }) => id),
    linked.map(({ after }) => JSON.stringify(after)),
  )
}
