import type { Receipt } from '../../../engine/engine.ts'
import { isMillraceError, UnsupportedError } from '../../../errors.ts'
import type { NewJob } from '../../../job/job.ts'
import { createInspector } from './inspector.ts'
import type { TypeStores } from './stores.ts'

/** The jobs of each type are stored whole or not at all. Types are stored one after another. */
export async function enqueueByType(stores: TypeStores, jobs: readonly NewJob[]): Promise<readonly Receipt[]> {
  const places = Map.groupBy(jobs.keys(), (place) => jobs[place]?.type ?? '')
  if (places.size > 1) for (const job of jobs) if (job.after !== null) await refuseCrossing(stores, job, jobs)
  const receipts = new Map<number, Receipt>()
  for (const [type, own] of places) {
    const store = await stores.enlisted(type)
    const those = own.flatMap((place) => jobs[place] ?? [])
    const stored = await store.enqueue(those).catch((error: unknown) => explainUnknown(stores, those, error))
    for (const [index, receipt] of stored.entries()) receipts.set(own[index] ?? 0, receipt)
  }
  return jobs.flatMap((_, place) => receipts.get(place) ?? [])
}

function crossing(job: NewJob, other: string): UnsupportedError {
  return new UnsupportedError({
    job: job.type,
    engine: 'redis',
    limit: `keeps each type on one slot of the cluster, and a job can only come after jobs of its own type; '${other}' is another`,
  })
}

/** Before anything is stored: a predecessor of another type, in this batch or stored. */
async function refuseCrossing(stores: TypeStores, job: NewJob, batch: readonly NewJob[]): Promise<void> {
  const ids = job.after?.ids ?? []
  const typeOf = new Map(batch.map(({ id, type }) => [id, type]))
  const stored = await createInspector(stores).find(ids)
  for (const [index, id] of ids.entries()) {
    const type = typeOf.get(id) ?? stored[index]?.type
    if (type !== undefined && type !== job.type) throw crossing(job, type)
  }
}

/** A predecessor that this type does not know may be known under another. */
async function explainUnknown(stores: TypeStores, jobs: readonly NewJob[], error: unknown): Promise<never> {
  if (isMillraceError(error, 'ERR_JOB_UNKNOWN'))
    for (const job of jobs) if (job.after !== null) await refuseCrossing(stores, job, jobs)
  throw error
}
