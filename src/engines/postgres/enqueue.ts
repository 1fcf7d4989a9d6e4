import type { Receipt } from '../../engine/engine.ts'
import type { NewJob } from '../../job/job.ts'
import { toIso } from '../../time/iso.ts'
import type { Queries } from './database.ts'
import { link, refuseUnknown } from './dependencies.ts'
import {
  ENQUEUE,
  ENQUEUE_LATEST,
  FIND_KNOWN,
  FIND_LATEST,
  RELEASE_KEYS,
  SUPERSEDE_WAITING,
  TAKE_LATEST_SEQ,
} from './statements.ts'

/** A job with nothing that another row could contradict but its id: one statement stores any number of them. */
export function isPlain(job: NewJob): boolean {
  return job.key === null && job.latest === null && job.after === null
}

/** Plain jobs. One statement, so all or nothing. */
export async function insertPlain(queries: Queries, jobs: readonly NewJob[]): Promise<readonly Receipt[]> {
  return receiptsOf(jobs, await insert(queries, jobs)).map((receipt, index) => receipt ?? duplicate(jobs, index))
}

function duplicate(jobs: readonly NewJob[], index: number): Receipt {
  return { id: jobs[index]?.id ?? '', status: 'duplicate' }
}

/** Jobs of any kind, in their order. Inside a transaction: ours, or the user's own. */
export async function insertJobs(queries: Queries, jobs: readonly NewJob[]): Promise<readonly Receipt[]> {
  await refuseUnknown(queries, jobs, findKnown)
  const receipts = await insertInOrder(queries, jobs)
  await link(queries, jobs, receipts)
  return receipts
}

async function insertInOrder(queries: Queries, jobs: readonly NewJob[]): Promise<readonly Receipt[]> {
  const receipts: Receipt[] = []
  while (receipts.length < jobs.length) {
    const left = jobs.slice(receipts.length)
    const [job] = left
    if (job === undefined) break
    if (job.latest !== null) receipts.push(await insertLatest(queries, job, job.latest))
    else receipts.push(...(await insertKeyed(queries, left.slice(0, countTogether(left)))))
  }
  return receipts
}

/** How many of the first jobs one statement can store: what comes back names them by their ids. */
function countTogether(jobs: readonly NewJob[]): number {
  const ids = new Set<string>()
  const end = jobs.findIndex((job) => job.latest !== null || ids.size === ids.add(job.id).size)
  return end === -1 ? jobs.length : end
}

/** How often a key is tried again whose job finished between the insert and the look at it. */
const KEY_TRIES = 20

async function insertKeyed(queries: Queries, jobs: readonly NewJob[]): Promise<readonly Receipt[]> {
  const receipts: (Receipt | undefined)[] = [...receiptsOf(jobs, await insert(queries, jobs))]
  for (let tries = 0; tries < KEY_TRIES && receipts.includes(undefined); tries += 1) {
    const open = receipts.flatMap((receipt, index) => (receipt === undefined ? [index] : []))
    const known = await findKnown(
      queries,
      open.map((index) => jobs[index]).filter((job) => job !== undefined),
    )
    // Not at once: nearly always the job of the key has just finished, and the key is free.
    if (tries > 0) await releaseKeys(queries, jobs)
    for (const [place, index] of open.entries()) {
      const id = known[place] ?? null
      const job = jobs[index]
      if (id !== null) receipts[index] = { id, status: 'duplicate' }
      else if (job !== undefined) receipts[index] = receiptsOf([job], await insert(queries, [job]))[0]
    }
  }
  return receipts.map((receipt) => {
    if (receipt !== undefined) return receipt
    // Neither stored nor a duplicate of anything: the call is repeated, or fails.
    throw Object.assign(new Error('a key was taken and given up again and again'), { code: '40001' })
  })
}

/** From finished rows of a table that lets no two rows have one key. */
export async function releaseKeys(queries: Queries, jobs: readonly { readonly key: string | null }[]): Promise<void> {
  await queries.rows(
    RELEASE_KEYS,
    jobs.flatMap(({ key }) => key ?? []),
  )
}

async function findKnown(queries: Queries, jobs: readonly NewJob[]): Promise<readonly (string | null)[]> {
  const rows = await queries.rows<{ id: string | null }>(
    FIND_KNOWN,
    jobs.map((job) => job.id),
    jobs.map((job) => job.key),
  )
  return rows.map((row) => row.id)
}

/** The ids that are stored now and were not before. */
async function insert(queries: Queries, jobs: readonly NewJob[]): Promise<Set<string>> {
  const rows = await queries.rows<{ id: string }>(ENQUEUE, ...columnsOf(jobs))
  return new Set(rows.map((row) => row.id))
}

/** Undefined for those that were not stored. The same id twice in a batch is stored once. */
function receiptsOf(jobs: readonly NewJob[], stored: Set<string>): readonly (Receipt | undefined)[] {
  return jobs.map(({ id }) => (stored.delete(id) ? { id, status: 'enqueued' } : undefined))
}

function columnsOf(jobs: readonly NewJob[]): readonly unknown[] {
  return [
    jobs.map((job) => job.id),
    jobs.map((job) => job.type),
    jobs.map((job) => job.payload),
    jobs.map((job) => job.payloadVersion),
    jobs.map((job) => job.priority),
    jobs.map((job) => job.attempts),
    jobs.map((job) => job.delayMs),
    jobs.map((job) => (job.runAtMs === null ? null : toIso(job.runAtMs))),
    jobs.map((job) => job.key),
    jobs.map((job) => (job.tenant === null ? null : JSON.stringify(job.tenant))),
    jobs.map((job) => (job.options === null ? null : JSON.stringify(job.options))),
  ]
}

interface LatestRow {
  readonly id: string
  readonly status: string
  readonly due: Date
  readonly arrival: string | null
}

/** A waiting older job ends superseded and leaves its place; a running one is waited for. */
async function insertLatest(queries: Queries, job: NewJob, latest: NonNullable<NewJob['latest']>): Promise<Receipt> {
  const [known] = await findKnown(queries, [job])
  if (known !== null && known !== undefined) return { id: known, status: 'duplicate' }
  const [taken] = await queries.rows<{ seq: number }>(TAKE_LATEST_SEQ, job.type, latest.key, latest.seq)
  if (taken === undefined) return { id: job.id, status: 'stale' }
  const others = await queries.rows<LatestRow>(FIND_LATEST, job.type, latest.key)
  const running = others.some((other) => other.status === 'processing')
  const waiting = others.filter((other) => other.status === 'queued')
  for (const other of waiting) await queries.rows(SUPERSEDE_WAITING, other.id, job.id)
  const [place] = waiting
  const rows = await queries.rows<{ id: string }>(
    ENQUEUE_LATEST,
    ...columnsOf([job]),
    latest.key,
    taken.seq,
    running,
    place?.due ?? null,
    place?.arrival ?? null,
  )
  // The key was taken by someone else in this very moment: what was superseded above stays so only if this is stored.
  if (rows.length === 0) throw Object.assign(new Error('the key was taken meanwhile'), { code: '40001' })
  return { id: job.id, status: waiting.length > 0 ? 'replaced' : 'enqueued' }
}
