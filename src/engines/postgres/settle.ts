import type { Lease, NotApplied, Outcome, Settlement } from '../../engine/outcome.ts'
import type { RemovedJobViews } from '../../engine/wait-until-finished.ts'
import { storable, storableRecord } from '../../job/error-record.ts'
import { type ErrorRecord, HISTORY_MAX } from '../../job/job.ts'
import { hasKeepLimit } from '../sql/keep-limits.ts'
import { eventsOf, type Uncompleted } from '../sql/outcomes.ts'
import {
  type Accepted,
  type Applied,
  appliedOf,
  complete,
  type Guard,
  isCompletion,
  joined,
  retryIndividually,
  split,
  unguarded,
} from './complete.ts'
import type { Database, Queries } from './database.ts'
import { after, held, ms, NOW, NOW_ISO, rowsFrom, UNLEASED } from './fragments.ts'
import { applyKeepLimits } from './keep-limits.ts'
import { findLost } from './leases.ts'
import type { Names } from './names.ts'
import { fenceOf } from './rows.ts'

/** Events of `jobs`. Other tables may have jobs with the same id. */
const OURS = (alias: string): string => `coalesce(${alias}.data ->> 'table', 'jobs') = 'jobs'`

/** Most events of one outcome. The statement that inserts them does not see them yet. */
const LINES_MAX = 2

const QUEUED_AGAIN = `held.kind IN ('retry', 'release')`

const DEFERRED = `(held.kind = 'retry' OR held.kind = 'release' AND held.delay_ms > 0)`

/**
 * Applies every other outcome whose token holds, records its events, trims the oldest, and returns the ids. The first event
 * of each keeps the time of the start, which leaves the row. Without a delay a released job keeps its place; it was due, and
 * stays so if the clock was set back meanwhile.
 */
export const SETTLE = ({ jobs, events, eventIdType }: Names): string => `
WITH held AS MATERIALIZED (
  SELECT given.*, job.started_at, job.awaited FROM ${jobs} AS job
  JOIN ${rowsFrom('$2::text[]', '$3::text[]', '$4::text[]', '$5::float8[]', '$6::text[]', '$7::text[]', '$8::text[]', '$9::text[]', '$10::boolean[]')}
    AS given (id, token, kind, delay_ms, code, reason, record, lines, bounded) ON ${held('job', 'given')}
  FOR UPDATE OF job),
changed AS (
  UPDATE ${jobs} AS job SET
    status = CASE WHEN ${QUEUED_AGAIN} THEN 'queued' ELSE 'failed' END,
    ended = CASE WHEN held.kind = 'superseded' THEN 'superseded' END,
    attempt_count = attempt_count - CASE WHEN held.kind = 'release' THEN 1 ELSE 0 END,
    run_at = CASE WHEN ${DEFERRED} THEN ${after('held.delay_ms')} WHEN ${QUEUED_AGAIN} THEN least(run_at, ${NOW}) ELSE run_at END,
    next_earliest_run_at = CASE WHEN ${DEFERRED} THEN ${after('held.delay_ms')} END,
    started_at = CASE WHEN ${QUEUED_AGAIN} THEN NULL ELSE job.started_at END,
    completed_at = CASE WHEN ${QUEUED_AGAIN} THEN NULL ELSE ${NOW} END,
    fail_code = CASE WHEN held.kind = 'release' THEN fail_code ELSE held.code END,
    fail_reason = CASE WHEN held.kind = 'release' THEN fail_reason ELSE held.reason END,
    error_record = CASE WHEN held.kind = 'release' THEN error_record ELSE held.record::json END,
    bounded = held.bounded, ${UNLEASED}
  FROM held WHERE job.id::text = held.id),
recorded AS (
  INSERT INTO ${events} (job_id, data)
  SELECT held.id::${eventIdType}, line.value || jsonb_build_object('table', 'jobs', 'at', ${NOW_ISO}) || CASE WHEN line.nth = 1 THEN
      jsonb_build_object('details', line.value -> 'details' || jsonb_build_object('startedAtMs', ${ms('held.started_at')}))
      ELSE '{}' END
  FROM held CROSS JOIN LATERAL jsonb_array_elements(held.lines::jsonb) WITH ORDINALITY AS line (value, nth)
  ORDER BY held.id, line.nth),
trimmed AS (
  DELETE FROM ${events} AS event USING held CROSS JOIN LATERAL (
    SELECT seq FROM ${events} AS line WHERE line.job_id = held.id::${eventIdType} AND ${OURS('line')}
    ORDER BY line.job_id DESC, line.seq DESC OFFSET ${HISTORY_MAX - LINES_MAX} LIMIT 1) AS oldest
  WHERE event.job_id = held.id::${eventIdType} AND event.seq <= oldest.seq AND ${OURS('event')})
SELECT id, token, awaited FROM held`

/** The newer job of the latest key that waits behind the held one. */
export const FIND_NEWER = ({ jobs }: Names): string => `
SELECT newer.id::text AS id, ${NOW} AS now FROM ${jobs} AS newer
WHERE newer.type = $2 AND newer.latest_key = $3 AND newer.status = 'queued'`

export const LOCK_JOB = ({ jobs }: Names): string =>
  `SELECT id::text AS id, ${NOW} AS now FROM ${jobs} WHERE id::text = $2 FOR UPDATE`

/** A settlement and its worker. */
export interface Settling extends Settlement {
  readonly worker: string
}

export interface Settled {
  /** Why each was refused; null if it was applied. */
  readonly lost: readonly (NotApplied | null)[]
  /** Whether successors of one of them may run now. */
  readonly freed: boolean
}

/** Applies the outcomes whose tokens hold. Of two for one lease, the first counts. */
export async function settleLeases(
  database: Database,
  given: readonly Settling[],
  removedViews: RemovedJobViews,
): Promise<Settled> {
  const seen = new Set<string>()
  for (const { lease } of given) seen.add(lease.token)
  return seen.size === given.length
    ? settleOnce(database, given, removedViews)
    : settleRepeatedly(database, given, removedViews)
}

async function settleRepeatedly(
  database: Database,
  given: readonly Settling[],
  removedViews: RemovedJobViews,
): Promise<Settled> {
  const isFirst = ({ lease }: Settling, at: number) =>
    given.findIndex((each) => each.lease.token === lease.token) === at
  const firsts = given.filter(isFirst)
  const repeats = given.filter((settling, at) => !isFirst(settling, at))
  const settled = await settleOnce(database, firsts, removedViews)
  const again = await settleLeases(database, repeats, removedViews)
  return {
    lost: given.map(
      (settling) => settled.lost[firsts.indexOf(settling)] ?? again.lost[repeats.indexOf(settling)] ?? null,
    ),
    freed: settled.freed || again.freed,
  }
}

/** By id, in the order in which jobs are locked (`lockOrder`). Claimed jobs nearly always are in order. */
function inOrder(given: readonly Settling[]): readonly Settling[] {
  const isBefore = (one: Settling, other: Settling): boolean => one.lease.job.id < other.lease.job.id
  const isOrdered = given.every((settling, at) => {
    const previous = given[at - 1]
    return previous === undefined || !isBefore(settling, previous)
  })
  return isOrdered ? given : [...given].sort((one, other) => (isBefore(one, other) ? -1 : isBefore(other, one) ? 1 : 0))
}

async function settleOnce(
  database: Database,
  given: readonly Settling[],
  removedViews: RemovedJobViews,
): Promise<Settled> {
  const [bounded, unbounded] = split(inOrder(given), ({ outcome }) => hasKeepLimit(outcome))
  const [latest, plain] = split(unbounded, isSupersedable)
  const applied = [await settlePlain(database, plain, retryIndividually)]
  for (const settling of latest)
    applied.push(await retryIndividually([settling], () => settleLatest(database, settling)))
  if (bounded.length > 0)
    applied.push(await retryIndividually(bounded, (settlings) => settleBounded(database, settlings, removedViews)))
  const { refused, unstorable, awaited: freed } = joined(applied)
  // The usual case.
  if (refused.length + unstorable.length === 0) return { lost: given.map(() => null), freed }
  const gone = refused.map(({ lease }) => lease)
  const byToken = new Map<string, NotApplied>()
  for (const refusal of [...(await findLost(database, gone)), ...unstorable]) byToken.set(refusal.lease.token, refusal)
  return { lost: given.map(({ lease }) => byToken.get(lease.token) ?? null), freed }
}

async function settlePlain(queries: Queries, given: readonly Settling[], guard: Guard): Promise<Applied<Settling>> {
  const completions = given.filter(isCompletion)
  if (completions.length === given.length) return complete(queries, completions, guard)
  const others = given.filter((settling) => !isCompletion(settling))
  return joined<Settling>(
    await Promise.all([
      complete(queries, completions, guard),
      guard(others, (settlings) => applyAll(queries, settlings)),
    ]),
  )
}

async function applyAll(queries: Queries, given: readonly Settling[]): Promise<Applied<Settling>> {
  return appliedOf(
    given,
    await apply(
      queries,
      given.map((settling) => toChange(settling)),
    ),
  )
}

/** Outcomes with keep limits remove older jobs in the same transaction. */
function settleBounded(
  database: Database,
  given: readonly Settling[],
  removedViews: RemovedJobViews,
): Promise<Applied<Settling>> {
  return database.transaction(async (queries) => {
    const applied: Applied<Settling>[] = []
    for (const settling of given) {
      applied.push(
        await (isSupersedable(settling)
          ? supersedeOrApply(queries, settling)
          : settlePlain(queries, [settling], unguarded)),
      )
    }
    const all = joined(applied)
    const accepted = given.filter((settling) => !all.refused.includes(settling))
    await applyKeepLimits(queries, accepted, removedViews)
    return all
  })
}

function isSupersedable({ lease, outcome }: Settling): boolean {
  return lease.job.latestKey !== null && outcome.kind !== 'complete'
}

interface Line {
  readonly type: string
  readonly attempt: number
  readonly worker: string
  readonly details: Readonly<Record<string, unknown>>
}

/** One row of SETTLE. */
interface Change {
  readonly lease: Lease
  readonly kind: 'retry' | 'dead' | 'release' | 'superseded'
  readonly delayMs: number
  readonly error: ErrorRecord | null
  readonly lines: readonly Line[]
  /** Whether it has a keep limit for dead letters. */
  readonly bounded: boolean
}

/** `newerId`: the job of the same latest key that supersedes this one. */
function toChange({ lease, outcome: given, worker }: Settling, newerId: string | null = null): Change {
  const outcome = storableOutcome(given)
  const lines = eventsOf(outcome, newerId).map(
    ({ name, detail }): Line => ({
      type: name,
      attempt: lease.attempt,
      worker,
      details: detail,
    }),
  )
  return {
    lease,
    kind: newerId === null ? outcome.kind : 'superseded',
    delayMs: outcome.kind === 'dead' || newerId !== null ? 0 : outcome.delayMs,
    error: outcome.kind === 'release' ? null : outcome.error,
    lines,
    bounded: outcome.kind === 'dead' && newerId === null && outcome.keep !== undefined,
  }
}

function storableOutcome(outcome: Outcome): Uncompleted {
  if (outcome.kind === 'complete') throw new TypeError('completions are settled by complete.ts')
  if (outcome.kind === 'release') return { ...outcome, reason: storable(outcome.reason) }
  return { ...outcome, error: storableRecord(outcome.error) }
}

async function apply(queries: Queries, changes: readonly Change[]): Promise<readonly Accepted[]> {
  if (changes.length === 0) return []
  return queries.rows<Accepted>(
    SETTLE,
    changes.map(({ lease }) => lease.job.id),
    changes.map(({ lease }) => fenceOf(lease).token),
    changes.map(({ kind }) => kind),
    changes.map(({ delayMs }) => delayMs),
    changes.map(({ error }) => error?.code ?? null),
    changes.map(({ error }) => error?.message ?? null),
    changes.map(({ error }) => (error === null ? null : JSON.stringify(error))),
    changes.map(({ lines }) => JSON.stringify(lines)),
    changes.map(({ bounded }) => bounded),
  )
}

/** The lock on the older job keeps an enqueue of a newer one before or after this, never in between. */
function settleLatest(database: Database, settling: Settling): Promise<Applied<Settling>> {
  return database.transaction((queries) => supersedeOrApply(queries, settling))
}

async function supersedeOrApply(queries: Queries, settling: Settling): Promise<Applied<Settling>> {
  const { job } = settling.lease
  await queries.rows(LOCK_JOB, job.id)
  const [newer] = await queries.rows<{ id: string }>(FIND_NEWER, job.type, job.latestKey)
  return appliedOf([settling], await apply(queries, [toChange(settling, newer?.id)]))
}
