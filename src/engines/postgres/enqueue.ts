import type { Receipt } from '../../engine/engine.ts'
import type { NewJob } from '../../job/job.ts'
import { toIso } from '../../time/iso.ts'
import type { Queries } from './database.ts'
import { link, refuseUnknown } from './dependencies.ts'
import { LOCK_JOBS, LOCK_LATEST, TAKE_ARRIVALS } from './lock-statements.ts'
import {
  ENQUEUE,
  ENQUEUE_KEYED,
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

/** One job with a key and nothing else needs no transaction: only one of its statements can store it. */
export function isOneStatement(jobs: readonly NewJob[]): boolean {
  return jobs.length === 1 && jobs.every(({ latest, after }) => latest === null && after === null)
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
  await lockAhead(queries, jobs)
  const receipts = await insertInSteps(queries, jobs)
  await link(queries, jobs, receipts)
  return receipts
}

/**
 * Keys alone are stored by one statement in their order. One job alone locks one thing after the other in the order of
 * lock-statements.ts anyway, unless it comes after others and has a key too.
 */
async function lockAhead(queries: Queries, jobs: readonly NewJob[]): Promise<void> {
  const [job, ...others] = jobs
  if (job === undefined || jobs.every(({ latest, after }) => latest === null && after === null)) return
  if (others.length === 0 && (job.after === null || (job.key === null && job.latest === null))) return
  const latest = jobs.flatMap((each) => (each.latest === null ? [] : [{ type: each.type, key: each.latest.key }]))
  const [types, names] = [latest.map(({ type }) => type), latest.map(({ key }) => key)]
  if (latest.length > 0) await queries.rows(LOCK_LATEST, types, names)
  const ids = jobs.flatMap(({ after }) => after?.ids ?? [])
  const keys = jobs.flatMap(({ key }) => (key === null ? [] : [key]))
  // One that was claimed while this waited for another is found in flight by the second look.
  for (const inFlight of [true, false]) await queries.rows(LOCK_JOBS, ids, keys, types, names, inFlight)
}

/** Stores each step as a whole. A step is one job with a latest key, or any number without. */
async function insertInSteps(queries: Queries, jobs: readonly NewJob[]): Promise<readonly Receipt[]> {
  const steps = stepsOf(jobs)
  const arrivals = steps.length < 2 ? null : await takeArrivals(queries, jobs.length)
  const receipts: Receipt[] = []
  for (const step of steps) {
    const [at = 0] = step
    const places = arrivals === null ? null : step.map((index) => arrivals[index] ?? null)
    const given = step.flatMap((index) => jobs[index] ?? [])
    const [job] = given
    const stored =
      job?.latest == null
        ? await insertKeyed(queries, given, places)
        : [await insertLatest(queries, job, job.latest, arrivals?.[at] ?? null)]
    for (const [place, index] of step.entries()) receipts[index] = stored[place] ?? duplicate(jobs, index)
  }
  return receipts
}

async function takeArrivals(queries: Queries, count: number): Promise<readonly string[]> {
  return (await queries.rows<{ arrival: string }>(TAKE_ARRIVALS, count)).map(({ arrival }) => arrival)
}

/** Which jobs are stored together, by their indexes: those with latest keys first, in the order of these (lock-statements.ts). */
function stepsOf(jobs: readonly NewJob[]): readonly (readonly number[])[] {
  const all = [...jobs.keys()]
  const isLatest = (index: number): boolean => jobs[index]?.latest != null
  const latest = all.filter(isLatest)
  const keys = new Set(latest.map((index) => jobs[index]?.key ?? null))
  const contest = all.some(
    (index) => !isLatest(index) && jobs[index]?.key != null && keys.has(jobs[index]?.key ?? null),
  )
  // Of two jobs of one key the first is stored, so these stay in their order.
  if (contest) return runsOf(jobs, all)
  const nameOf = (index: number): string => `${jobs[index]?.type} ${jobs[index]?.latest?.key}`
  const byName = latest.sort((one, other) =>
    nameOf(one) < nameOf(other) ? -1 : nameOf(one) > nameOf(other) ? 1 : one - other,
  )
  return runsOf(jobs, [...byName, ...all.filter((index) => !isLatest(index))])
}

/** What one statement stores comes back by its ids, so that none may be there twice. */
function runsOf(jobs: readonly NewJob[], indexes: readonly number[]): readonly (readonly number[])[] {
  const runs: number[][] = []
  let ids = new Set<string>()
  let run: number[] | null = null
  for (const index of indexes) {
    const job = jobs[index]
    if (job === undefined) continue
    if (job.latest !== null) {
      runs.push([index])
      run = null
      continue
    }
    if (run === null || ids.has(job.id)) {
      run = []
      ids = new Set()
      runs.push(run)
    }
    run.push(index)
    ids.add(job.id)
  }
  return runs
}

/** How often a key is tried again whose job finished between the insert and the look at it. */
const KEY_TRIES = 20

async function insertKeyed(
  queries: Queries,
  jobs: readonly NewJob[],
  arrivals: readonly (string | null)[] | null,
): Promise<readonly Receipt[]> {
  const receipts: (Receipt | undefined)[] = [...receiptsOf(jobs, await insert(queries, jobs, arrivals))]
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
async function insert(
  queries: Queries,
  jobs: readonly NewJob[],
  arrivals: readonly (string | null)[] | null = null,
): Promise<Set<string>> {
  const isPlainOrder = arrivals === null && (jobs.length === 1 || jobs.every(({ key }) => key === null))
  const rows = isPlainOrder
    ? await queries.rows<{ id: string }>(ENQUEUE, ...columnsOf(jobs))
    : await queries.rows<{ id: string }>(ENQUEUE_KEYED, ...columnsOf(jobs), arrivals ?? [])
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
async function insertLatest(
  queries: Queries,
  job: NewJob,
  latest: NonNullable<NewJob['latest']>,
  arrival: string | null,
): Promise<Receipt> {
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
    place?.arrival ?? arrival,
  )
  // The key was taken by someone else in this very moment: what was superseded above stays so only if this is stored.
  if (rows.length === 0) throw Object.assign(new Error('the key was taken meanwhile'), { code: '40001' })
  return { id: job.id, status: waiting.length > 0 ? 'replaced' : 'enqueued' }
}
