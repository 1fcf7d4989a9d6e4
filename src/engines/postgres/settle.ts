import type { Farewells } from '../../engine/farewells.ts'
import type { Lease, Lost, LostReason, NotApplied, Outcome, Settlement } from '../../engine/outcome.ts'
import { storable, storableRecord } from '../../job/error-record.ts'
import type { Ended, ErrorRecord } from '../../job/job.ts'
import {
  type Accepted,
  type Applied,
  alone,
  appliedOf,
  complete,
  type Guard,
  isCompletion,
  joined,
  nameOf,
  nameOfLease,
  split,
  unguarded,
} from './complete.ts'
import type { Database, Queries } from './database.ts'
import { fenceOf } from './rows.ts'
import { FIND_NEWER, LOCK_JOB, LOOK_AT_LEASES, RENEW, RENEW_ONE, REPORT, SETTLE } from './settle-statements.ts'
import { isKeeping, removeSurplus } from './surplus.ts'

/** A settlement and whose it is. */
export interface Settling extends Settlement {
  readonly worker: string
}

export interface Settled {
  /** For each why it was refused, or null. */
  readonly lost: readonly (NotApplied | null)[]
  /** Whether others came after one of them, and may go on now. */
  readonly freed: boolean
}

/** Applies the outcomes whose tokens hold. Of two for one lease the first counts. */
export async function settleLeases(
  database: Database,
  given: readonly Settling[],
  farewells: Farewells,
): Promise<Settled> {
  const seen = new Set<string>()
  for (const { lease } of given) seen.add(lease.token)
  return seen.size === given.length
    ? settleOnce(database, given, farewells)
    : settleRepeatedly(database, given, farewells)
}

async function settleRepeatedly(
  database: Database,
  given: readonly Settling[],
  farewells: Farewells,
): Promise<Settled> {
  const isFirst = ({ lease }: Settling, at: number) =>
    given.findIndex((each) => each.lease.token === lease.token) === at
  const firsts = given.filter(isFirst)
  const repeats = given.filter((settling, at) => !isFirst(settling, at))
  const settled = await settleOnce(database, firsts, farewells)
  const again = await settleLeases(database, repeats, farewells)
  return {
    lost: given.map(
      (settling) => settled.lost[firsts.indexOf(settling)] ?? again.lost[repeats.indexOf(settling)] ?? null,
    ),
    freed: settled.freed || again.freed,
  }
}

/** By id, as everyone locks jobs (lock-statements.ts). What a claim has brought nearly always is. */
function inOrder(given: readonly Settling[]): readonly Settling[] {
  const isBefore = (one: Settling, other: Settling): boolean => one.lease.job.id < other.lease.job.id
  const isOrdered = given.every((settling, at) => {
    const previous = given[at - 1]
    return previous === undefined || !isBefore(settling, previous)
  })
  return isOrdered ? given : [...given].sort((one, other) => (isBefore(one, other) ? -1 : isBefore(other, one) ? 1 : 0))
}

async function settleOnce(database: Database, given: readonly Settling[], farewells: Farewells): Promise<Settled> {
  const [bounded, unbounded] = split(inOrder(given), ({ outcome }) => isKeeping(outcome))
  const [latest, plain] = split(unbounded, isSupersedable)
  const applied = [await settlePlain(database, plain, alone)]
  for (const settling of latest) applied.push(await alone([settling], () => settleLatest(database, settling)))
  if (bounded.length > 0)
    applied.push(await alone(bounded, (settlings) => settleBounded(database, settlings, farewells)))
  const { refused, unstorable, awaited: freed } = joined(applied)
  // Nearly always.
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
  return appliedOf(given, await apply(queries, given.map(toChange)))
}

/** Where a number of finished jobs is kept, what is too many goes in the same transaction. */
function settleBounded(
  database: Database,
  given: readonly Settling[],
  farewells: Farewells,
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
    await removeSurplus(queries, accepted, farewells)
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
  /** Whether its type keeps a number of dead letters. */
  readonly bounded: boolean
}

function toChange({ lease, outcome, worker }: Settling): Change {
  const line = (type: string, details: Line['details'] = {}): Line => ({
    type,
    attempt: lease.attempt,
    worker,
    details,
  })
  switch (outcome.kind) {
    case 'retry': {
      const error = storableRecord(outcome.error)
      const lines = [failure(line, error), line('retried', { delayMs: outcome.delayMs })]
      return { lease, kind: 'retry', delayMs: outcome.delayMs, error, lines, bounded: false }
    }
    case 'dead': {
      const error = storableRecord(outcome.error)
      const lines = [failure(line, error), line('dead')]
      return { lease, kind: 'dead', delayMs: 0, error, lines, bounded: outcome.keep !== undefined }
    }
    case 'release': {
      const lines = [line('released', { reason: storable(outcome.reason), delayMs: outcome.delayMs })]
      return { lease, kind: 'release', delayMs: outcome.delayMs, error: null, lines, bounded: false }
    }
    case 'complete':
      throw new TypeError('completions have a statement of their own')
    default:
      outcome satisfies never
      throw new TypeError('no such outcome')
  }
}

/** `failed` is passed through on the way to queued or dead_letter, and stands here. */
function failure(line: (type: string, details: Line['details']) => Line, error: ErrorRecord): Line {
  return line('failed', { name: error.name, code: error.code, message: error.message })
}

/** An older version of a latest key whose newer one waits is not run again. */
function toSuperseded(settling: Settling, by: string): Change {
  const { lease, outcome, worker } = settling
  const line = (type: string, details: Line['details']): Line => ({ type, attempt: lease.attempt, worker, details })
  const error = errorOf(outcome)
  const lines = [...(error === null ? [] : [failure(line, error)]), line('superseded', { by })]
  return { lease, kind: 'superseded', delayMs: 0, error, lines, bounded: false }
}

function errorOf(outcome: Outcome): ErrorRecord | null {
  return outcome.kind === 'retry' || outcome.kind === 'dead' ? storableRecord(outcome.error) : null
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

/** The lock on the older job keeps an enqueue of a newer one before or after this, never in between (I4). */
function settleLatest(database: Database, settling: Settling): Promise<Applied<Settling>> {
  return database.transaction((queries) => supersedeOrApply(queries, settling))
}

async function supersedeOrApply(queries: Queries, settling: Settling): Promise<Applied<Settling>> {
  const { job } = settling.lease
  await queries.rows(LOCK_JOB, job.id)
  const [newer] = await queries.rows<{ id: string }>(FIND_NEWER, job.type, job.latestKey)
  const change = newer === undefined ? toChange(settling) : toSuperseded(settling, newer.id)
  return appliedOf([settling], await apply(queries, [change]))
}

/** Extends all that is still held in one statement, and only if that was not all looks for what is gone. */
export async function renewLeases(
  database: Database,
  leases: readonly Lease[],
  leaseMs: number,
): Promise<readonly Lost[]> {
  const renewed = await database.rows<Accepted>(RENEW, ...fences(leases), leaseMs)
  if (renewed.length === leases.length) return []
  const held = new Set(renewed.map(nameOf))
  const lost: Lost[] = []
  for (const lease of leases) {
    if (held.has(nameOfLease(lease))) continue
    const again = await database.rows(RENEW_ONE, lease.job.id, fenceOf(lease).token, leaseMs)
    if (again.length === 0) lost.push(...(await findLost(database, [lease])))
  }
  return lost
}

function fences(leases: readonly Lease[]): readonly [ids: readonly string[], tokens: readonly string[]] {
  return [leases.map((lease) => lease.job.id), leases.map((lease) => fenceOf(lease).token)]
}

export async function reportProgress(database: Database, lease: Lease, progress: string): Promise<boolean> {
  return (await database.rows(REPORT, lease.job.id, fenceOf(lease).token, progress)).length === 1
}

interface LookedAt {
  readonly id: string
  readonly token: string
  readonly ended: Ended | null
  readonly owned: boolean
  readonly alive: boolean
}

/** Why each of these leases, which were refused, is gone. */
export async function findLost(database: Database, leases: readonly Lease[]): Promise<readonly Lost[]> {
  if (leases.length === 0) return []
  const rows = await database.rows<LookedAt>(LOOK_AT_LEASES, ...fences(leases))
  return leases.map((lease) => {
    const row = rows.find(({ id, token }) => id === lease.job.id && token === fenceOf(lease).token)
    return { lease, reason: lostReason(row?.ended ?? null) }
  })
}

/** Those of the held leases that someone took away, an expiry nobody has acted on not counted. */
export async function findTaken(database: Database, leases: readonly Lease[]): Promise<readonly Lost[]> {
  const rows = await database.rows<LookedAt>(LOOK_AT_LEASES, ...fences(leases))
  return leases.flatMap((lease) => {
    const row = rows.find(({ id, token }) => id === lease.job.id && token === fenceOf(lease).token)
    return row?.owned === true ? [] : [{ lease, reason: lostReason(row?.ended ?? null) }]
  })
}

function lostReason(ended: Ended | null): LostReason {
  if (ended === 'superseded') return 'superseded'
  return ended === null ? 'expired' : 'cancelled'
}
