import type { Receipt } from '../../engine/engine.ts'
import type { NewJob } from '../../job/job.ts'
import { toIso } from '../../time/iso.ts'
import type { Queries } from './database.ts'
import { link, refuseUnknown } from './dependencies.ts'
import { after, LIVE, lockOrder, NOW, rowsFrom } from './fragments.ts'
import { insertLatest, LOCK_LATEST } from './latest-keys.ts'
import { literal, type Names } from './names.ts'

/**
 * A batch takes its locks before it changes anything, and always in one order: latest keys by name, then jobs as
 * `lockOrder` says, then idempotency keys by name. Otherwise two batches could wait for each other.
 *
 * Locks the jobs with these ids ($2), the live ones of these keys ($3), and the live ones of these types ($4) and latest keys
 * ($5); only those in flight if $6.
 */
export const LOCK_JOBS = ({ jobs }: Names): string => `
SELECT job.id::text AS id, ${NOW} AS now FROM ${jobs} AS job WHERE job.id IN (
  SELECT id FROM ${jobs} WHERE id::text = ANY ($2::text[])
  UNION SELECT other.id FROM ${rowsFrom('$3::text[]')} AS wanted (key)
    JOIN ${jobs} AS other ON other.idempotency_key = wanted.key AND other.${LIVE}
  UNION SELECT other.id FROM ${rowsFrom('$4::text[]', '$5::text[]')} AS wanted (type, latest_key)
    JOIN ${jobs} AS other ON other.type = wanted.type AND other.latest_key = wanted.latest_key AND other.${LIVE})
  AND (job.status = 'processing' OR NOT $6::boolean)
ORDER BY ${lockOrder('job')} FOR UPDATE OF job`

/** Places in the queue, for jobs that are not stored in their given order. */
export const TAKE_ARRIVALS = ({ arrivals }: Names): string => `
SELECT nextval('${arrivals.replaceAll("'", "''")}')::text AS arrival, ${NOW} AS now FROM generate_series(1, $2::int)`

export const NEW_JOBS = `unnest($2::text[], $3::text[], $4::text[], $5::int[], $6::int[], $7::int[], $8::float8[],
    $9::timestamptz[], $10::text[], $11::text[], $12::text[])
  WITH ORDINALITY AS given (id, type, payload, version, priority, attempts, delay_ms, run_at, key, tenant, options, nth)`

export const JOB_COLUMNS = `id, type, payload, payload_version, priority, max_attempts, run_at, next_earliest_run_at,
  created_at, updated_at, idempotency_key, tenant, options`

export function jobValues({ idType, payloadType }: Names): string {
  return `id::${idType}, type, payload::${payloadType}, version, priority, attempts, due, CASE WHEN due > ${NOW} THEN due END,
  ${NOW}, ${NOW}, key, tenant::json, options::json`
}

/** Stores any number of jobs, except those whose id exists or whose key is live. Returns the stored ids. */
export const ENQUEUE = (names: Names): string => `
INSERT INTO ${names.jobs} (${JOB_COLUMNS})
SELECT ${jobValues(names)}
FROM (SELECT given.*, coalesce(given.run_at, ${after('delay_ms')}) AS due FROM ${NEW_JOBS}) AS given
ORDER BY nth
ON CONFLICT DO NOTHING
RETURNING id::text AS id`

/**
 * The same for jobs with keys. An insert waits for another insert of the same key, so jobs are stored in the order of their
 * keys, and two batches never wait for each other. Their places in the queue ($13, or the next ones) follow their own order.
 */
export const ENQUEUE_KEYED = (names: Names): string => `
INSERT INTO ${names.jobs} (${JOB_COLUMNS}, arrival)
SELECT ${jobValues(names)}, arrival
FROM (
  SELECT given.*, coalesce(given.run_at, ${after('delay_ms')}) AS due,
    coalesce(($13::bigint[])[given.nth], nextval(${literal(names.arrivals)})) AS arrival
  FROM (SELECT * FROM ${NEW_JOBS} ORDER BY nth) AS given) AS placed
ORDER BY key, nth
ON CONFLICT DO NOTHING
RETURNING id::text AS id`

/** The existing job of each: the one with its id, else the live one with its key. */
export const FIND_KNOWN = ({ jobs }: Names): string => `
SELECT coalesce(
    (SELECT id::text FROM ${jobs} WHERE id::text = given.id),
    (SELECT id::text FROM ${jobs} WHERE idempotency_key = given.key AND ${LIVE})) AS id,
  ${NOW} AS now
FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS given (id, key, nth) ORDER BY nth`

/**
 * Only a table older than Millrace can have an index that keeps keys unique in every state. A finished row then gives up its
 * key and keeps it in `options` for a replay.
 */
export const RELEASE_KEYS = ({ jobs }: Names): string => `
UPDATE ${jobs} SET idempotency_key = NULL,
  options = ((CASE WHEN json_typeof(options::json) = 'object' THEN options::jsonb ELSE '{}' END)
    || jsonb_build_object('releasedKey', idempotency_key))::json
WHERE idempotency_key = ANY ($2::text[]) AND status IN ('completed', 'failed') AND ${NOW} IS NOT NULL`

/** A job that can conflict with another row only by its id: one statement stores any number of them. */
export function isPlain(job: NewJob): boolean {
  return job.key === null && job.latest === null && job.after === null
}

/** One job that has at most a key needs no transaction: only one of its statements can store it. */
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

/** Jobs of any kind, in order. Inside a transaction of Millrace or of the caller. */
export async function insertJobs(queries: Queries, jobs: readonly NewJob[]): Promise<readonly Receipt[]> {
  await refuseUnknown(queries, jobs, findKnown)
  await lockAhead(queries, jobs)
  const receipts = await insertInSteps(queries, jobs)
  await link(queries, jobs, receipts)
  return receipts
}

/**
 * Keys alone are stored by one statement in their order. A single job takes its locks in the right order anyway, unless it
 * comes after others and has a key too.
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
  // The second pass finds a job in flight that was claimed while the first waited for another.
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

/** Which jobs are stored together, by their indexes: those with latest keys first, in the order of these keys. */
function stepsOf(jobs: readonly NewJob[]): readonly (readonly number[])[] {
  const all = [...jobs.keys()]
  const isLatest = (index: number): boolean => jobs[index]?.latest != null
  const latest = all.filter(isLatest)
  const keys = new Set(latest.map((index) => jobs[index]?.key ?? null))
  const contest = all.some(
    (index) => !isLatest(index) && jobs[index]?.key != null && keys.has(jobs[index]?.key ?? null),
  )
  // Of two jobs with one key the first is stored, so these stay in order.
  if (contest) return runsOf(jobs, all)
  const nameOf = (index: number): string => `${jobs[index]?.type} ${jobs[index]?.latest?.key}`
  const byName = latest.sort((one, other) =>
    nameOf(one) < nameOf(other) ? -1 : nameOf(one) > nameOf(other) ? 1 : one - other,
  )
  return runsOf(jobs, [...byName, ...all.filter((index) => !isLatest(index))])
}

/** A statement returns what it stored by id, so no id may occur twice in it. */
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

/** How often an insert is repeated when the job with its key finished in between. */
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
    // Not on the first attempt: usually the job with the key has just finished, and the key is free.
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
    // Neither stored nor a duplicate: the call is repeated, or fails.
    throw Object.assign(new Error('a key was taken and released again and again'), { code: '40001' })
  })
}

/** Takes keys from finished rows of a table that keeps keys unique in every state. */
export async function releaseKeys(queries: Queries, jobs: readonly { readonly key: string | null }[]): Promise<void> {
  await queries.rows(
    RELEASE_KEYS,
    jobs.flatMap(({ key }) => key ?? []),
  )
}

export async function findKnown(queries: Queries, jobs: readonly NewJob[]): Promise<readonly (string | null)[]> {
  const rows = await queries.rows<{ id: string | null }>(
    FIND_KNOWN,
    jobs.map((job) => job.id),
    jobs.map((job) => job.key),
  )
  return rows.map((row) => row.id)
}

/** The ids that this call stored. */
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

/** Undefined for a job that was not stored. An id given twice is stored once. */
function receiptsOf(jobs: readonly NewJob[], stored: Set<string>): readonly (Receipt | undefined)[] {
  return jobs.map(({ id }) => (stored.delete(id) ? { id, status: 'enqueued' } : undefined))
}

export function columnsOf(jobs: readonly NewJob[]): readonly unknown[] {
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
