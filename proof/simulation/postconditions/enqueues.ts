import type { Engine, Receipt } from '../../../src/engine/engine.ts'
import type { JobView, NewJob } from '../../../src/job/job.ts'
import { allJobs, answered, isLive, viewsOf, type Watch } from './watch.ts'

export function watchEnqueue(engine: Engine, watch: Watch): Engine['enqueue'] {
  return async (jobs, within) => {
    const before = await allJobs(engine)
    const known = new Set(before.map(({ id }) => id))
    try {
      const receipts = await answered(watch, 'an enqueue', () => engine.enqueue(jobs, within))
      await judgeReceipts(engine, watch, { jobs, receipts, before })
      return receipts
    } catch (error) {
      const stored = await viewsOf(
        engine,
        jobs.map(({ id }) => id).filter((id) => !known.has(id)),
      ).catch(() => new Map())
      for (const id of stored.keys()) watch.expect(false, id, () => `${id} was stored by a call that was refused`)
      throw error
    }
  }
}

interface Stored {
  readonly jobs: readonly NewJob[]
  readonly receipts: readonly Receipt[]
  readonly before: readonly JobView[]
}

/** Also of jobs that were saved with a record. */
export async function judgeReceipts(engine: Engine, watch: Watch, { jobs, receipts, before }: Stored): Promise<void> {
  watch.same(null, 'the number of receipts', receipts.length, jobs.length)
  const after = await allJobs(engine)
  const added = receipts.filter(({ status }) => status === 'enqueued' || status === 'replaced').length
  watch.same(null, 'the number of new jobs', after.length - before.length, added)
  const views = new Map(after.map((view) => [view.id, view]))
  const known = new Set(before.map(({ id }) => id))
  const isPlain = receipts.every(({ status }) => status !== 'duplicate')
  for (const [index, job] of jobs.entries()) {
    const receipt = receipts[index]
    if (receipt === undefined) continue
    judgeReceipt(watch, { job, receipt, views, before, isRepeated: known.has(job.id), isPlain })
    known.add(job.id)
    if (receipt.status !== 'enqueued' && receipt.status !== 'replaced') continue
    // An id can be used again once its job was removed.
    watch.arrivals.delete(job.id)
    watch.arrivals.add(job.id)
  }
}

interface Judged {
  readonly job: NewJob
  readonly receipt: Receipt
  readonly views: ReadonlyMap<string, JobView>
  readonly before: readonly JobView[]
  /** The id was known, by an earlier call or in this one. */
  readonly isRepeated: boolean
  /** No job of the batch is a duplicate, for which the ones after it come after another. */
  readonly isPlain: boolean
}

function judgeReceipt(watch: Watch, judged: Judged): void {
  const { job, receipt, views, isRepeated } = judged
  const { id, status } = receipt
  const holders = [...views.values()].filter((view) => view.key !== null && view.key === job.key && isLive(view))
  watch.expect(holders.length <= 1, job.id, () => `${holders.length} live jobs have the key ${job.key}`)
  const version = versionOf(watch, job)
  switch (status) {
    case 'duplicate': {
      const first = views.get(id)
      watch.expect(first !== undefined, job.id, () => `the job ${id} of a duplicate is not there`)
      const isSame = isRepeated ? id === job.id : first?.key === job.key && first !== undefined && isLive(first)
      watch.expect(isSame, job.id, () => `${job.id} was answered as a duplicate of ${id}, which does not hold its key`)
      return
    }
    case 'stale':
      watch.expect(version === 'stale', job.id, () => `${job.id} was answered as stale, and is the newest version`)
      return
    case 'enqueued':
    case 'replaced':
      watch.expect(!isRepeated, job.id, () => `${job.id} was stored a second time`)
      watch.same(job.id, `the id in the receipt of ${job.id}`, id, job.id)
      watch.expect(version !== 'stale', job.id, () => `${job.id} is older than the newest version, and was stored`)
      judgeStored(watch, judged)
      judgeOlder(watch, judged)
      if (job.latest !== null && version !== null && version !== 'stale') watch.versions.set(keyOf(job), version)
      return
    default:
      status satisfies never
  }
}

const keyOf = ({ type, latest }: NewJob): string => `${type}/${latest?.key}`

function versionOf(watch: Watch, job: NewJob): number | 'stale' | null {
  if (job.latest === null) return null
  const highest = watch.versions.get(keyOf(job)) ?? 0
  const version = job.latest.seq ?? highest + 1
  return version > highest ? version : 'stale'
}

/** A job is stored as it was asked for. */
function judgeStored(watch: Watch, { job, views, isPlain }: Judged): void {
  const view = views.get(job.id)
  watch.expect(view !== undefined, job.id, () => `${job.id} was acknowledged and is not there`)
  if (view === undefined) return
  const { type, payload, payloadVersion, priority, attempts, key, tenant, options, after } = job
  const { latestKey } = view
  const found = {
    ...{ type: view.type, payload: view.payload, payloadVersion: view.payloadVersion, priority: view.priority },
    ...{ attempts: view.attempts, key: view.key, latestKey, tenant: view.tenant, options: view.options },
    after: isPlain ? view.after : after,
  }
  const asked = { type, payload, payloadVersion, priority, attempts, key, latestKey: job.latest?.key ?? null }
  watch.same(job.id, `the stored job ${job.id}`, found, { ...asked, tenant, options, after })
  // A version takes over the earlier place of the one that it replaces.
  const dueMs = job.runAtMs ?? watch.clock.nowMs() + job.delayMs
  const isDue = job.latest === null ? view.runAtMs === dueMs : view.runAtMs <= dueMs
  watch.expect(isDue, job.id, () => `${job.id} is due at ${view.runAtMs} and must be at ${dueMs}`)
}

/** The version that waited gives way, and its place is kept. */
function judgeOlder(watch: Watch, { job, receipt, views, before }: Judged): void {
  const older = before.find(
    ({ type, latestKey, state }) => type === job.type && latestKey === job.latest?.key && state === 'queued',
  )
  if (job.latest === null || older === undefined) return
  watch.same(job.id, `the status of ${job.id}, for which an older version waits`, receipt.status, 'replaced')
  const now = views.get(older.id)
  watch.same(older.id, `the state of ${older.id}, which is replaced`, now?.state ?? 'superseded', 'superseded')
  const newer = views.get(job.id)
  const keepsPlace = newer === undefined || newer.runAtMs <= older.runAtMs
  watch.expect(keepsPlace, job.id, () => `${job.id} does not keep the place of ${older.id}`)
}
