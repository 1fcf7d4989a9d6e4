import type { Receipt } from '../../engine/engine.ts'
import { UnknownJobError } from '../../errors.ts'
import type { NewJob } from '../../job/job.ts'
import { redirect } from '../../job/predecessors.ts'
import type { Queries } from './database.ts'
import { AWAIT, FIND_IDS, HOLD_BACK, LINK } from './dependency-statements.ts'

type FindKnown = (queries: Queries, jobs: readonly NewJob[]) => Promise<readonly (string | null)[]>

/**
 * Throws before anything of the batch is stored, so that a transaction of the user's own stays as it was. Only what
 * stands before a job in its batch is known to it, so that no batch can hold a circle.
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

/** New jobs take their places behind those that they come after. In the transaction that stored them. */
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
