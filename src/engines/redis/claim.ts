import { randomBytes } from 'node:crypto'
import type { ClaimRequest, SubscribedType, Subscription } from '../../engine/engine.ts'
import { LOST_CLAIM_REASON } from '../../engine/lost-claims.ts'
import type { Lease, Settlement } from '../../engine/outcome.ts'
import type { StoredJob } from '../../job/job.ts'
import { LEASE_DEFAULT_MS } from '../../job/options.ts'
import type { Clock } from '../../time/clock.ts'
import { isScheduledRun, scheduleNextRun } from './bullmq-schedulers.ts'
import type { RedisDatabase } from './database.ts'
import { queueOf, typeOf } from './keys.ts'
import { claimExpiredScript, claimScript } from './lua/claim.ts'
import { moveStartsScript } from './lua/limits.ts'
import { dropScript, supersedeScript, takeBackScript } from './lua/take-back.ts'
import { untieScript } from './lua/untie.ts'
import { attemptOf, type Fields, listOf, readStored, toFields } from './rows.ts'
import { settleLeases } from './settle.ts'

export interface Claimed {
  readonly leases: readonly Lease[]
  /** When there may be something to claim that nobody rings for; null: never. */
  readonly lookInMs: number | null
}

interface Claiming {
  readonly database: RedisDatabase
  readonly clock: Clock
  readonly worker: string
  /** Followed by a number it is the token of each job. */
  readonly token: string
}

/** Tokens are new at every claim: a random start for this process, a number for the call, another for the job. */
const ORIGIN = randomBytes(6).toString('base64url')
let calls = 0

export function nextToken(from: ClaimRequest['from']): string {
  calls += 1
  return `${from === 'expired' ? REAPED : 'c'}${ORIGIN}.${calls.toString(36)}.`
}

/** What the token of a reaper's claim begins with; Lua's `isReaped` looks for the same. */
const REAPED = 'x'
/** How long a reaper that names no types holds what it took over: ample for one settle, short if it dies too. */
const REAPER_LEASE_MS = 30_000

export async function claimReady(
  { database, clock, worker, token }: Claiming,
  types: readonly SubscribedType[],
  { max, perType = {} }: Pick<ClaimRequest, 'max' | 'perType'>,
): Promise<Claimed> {
  const wanted = types
    .map((subscribed) => ({ ...subscribed, bound: Math.min(max, perType[subscribed.type] ?? max) }))
    .filter(({ bound }) => bound > 0)
  if (wanted.length === 0) return { leases: [], lookInMs: null }
  const args = wanted.flatMap(({ type, leaseMs, bound, limit }) => [
    queueOf(type),
    leaseMs,
    bound,
    limit?.max ?? '',
    limit?.perMs ?? '',
  ])
  const answer = await database.run(claimScript(), [worker, token, max, wanted.length, ...args])
  const leaseOf = new Map(wanted.map(({ type, leaseMs }) => [type, leaseMs]))
  const claimed = await readClaimed({ database, clock, token }, answer, (type) => leaseOf.get(type) ?? LEASE_DEFAULT_MS)
  const limited = new Set(wanted.flatMap(({ type, limit }) => (limit === undefined ? [] : [type])))
  if (limited.size > 0)
    moveStarts(
      database,
      claimed.leases.filter(({ job }) => limited.has(job.type)),
    )
  return claimed
}

/**
 * After this turn of the event loop, in which the handlers start. Nobody waits for it: should it fail, the window of the
 * limit counts from the claim, and what is wrong with the server the next claim tells.
 */
function moveStarts(database: RedisDatabase, leases: readonly Lease[]): void {
  if (leases.length === 0) return
  const args = leases.flatMap(({ job, token }) => [queueOf(job.type), token])
  setImmediate(() => void database.run(moveStartsScript(), args).catch(() => {}))
}

/** What nobody holds any more, of the types asked for or of every type that Millrace has met here. */
export async function claimExpired(
  { database, clock, worker, token }: Claiming,
  types: Subscription['types'],
  max: number,
): Promise<Claimed> {
  const named = types === 'every' ? [] : types
  const args = named.flatMap(({ type, leaseMs }) => [queueOf(type), leaseMs])
  const count = types === 'every' ? -1 : named.length
  const answer = await database.run(claimExpiredScript(), [worker, token, max, REAPER_LEASE_MS, count, ...args])
  const leaseOf = new Map(named.map(({ type, leaseMs }) => [type, leaseMs]))
  return readClaimed({ database, clock, token }, answer, (type) => leaseOf.get(type) ?? REAPER_LEASE_MS)
}

/** A claim whose answer was lost. */
export interface LostClaim {
  readonly token: string
  readonly worker: string
  readonly types: Subscription['types']
}

/**
 * Undoes claims that have happened, and answers those. Jobs that were ready are ready again, with a start that does not
 * count; what a reaper took over is expired again.
 */
export async function takeBackClaims(
  database: RedisDatabase,
  claims: readonly LostClaim[],
): Promise<readonly LostClaim[]> {
  const found: LostClaim[] = []
  for (const claim of claims) {
    const queues = claim.types === 'every' ? [] : claim.types.map(({ type }) => queueOf(type))
    const answer = listOf(await database.run(takeBackScript(), [claim.token, ...queues]))
    const released: Settlement[] = []
    for (let index = 1; index < answer.length; index += 4) {
      const [queue, id, token, fields] = answer.slice(index, index + 4)
      const job = readStored(typeOf(String(queue)), String(id), toFields(fields))
      if (job === null) continue
      const lease = { job, attempt: attemptOf(toFields(fields)), token: String(token), expiresAtMs: null }
      released.push({ lease, outcome: { kind: 'release', delayMs: 0, reason: LOST_CLAIM_REASON } })
    }
    if (released.length > 0) await settleLeases(database, claim.worker, released)
    if (Number(answer[0]) > 0) found.push(claim)
  }
  return found
}

/** Queues per look. Most have nobody who waits for others. */
const UNTIE_QUEUES = 100

/** Jobs that wait for others in vain go on: all of them, in portions, so that nobody else waits long for Redis. */
export async function untieJobs(
  database: RedisDatabase,
  types: Subscription['types'],
  signal: AbortSignal,
): Promise<void> {
  const queues =
    types === 'every'
      ? listOf(await database.call('smembers', database.keys.types)).map(String)
      : types.map(({ type }) => queueOf(type))
  let at = 0
  let cursor = '0'
  while (at < queues.length && !signal.aborted) {
    const answer = listOf(await database.run(untieScript(), [cursor, ...queues.slice(at, at + UNTIE_QUEUES)]))
    at += Number(answer[0])
    cursor = String(answer[1])
  }
}

/** A job that waits though its attempts are used up was put back by BullMQ's `retry`, which grants it one more start. */
function granted(job: StoredJob, fields: Fields): StoredJob {
  const failed = Number(fields.get('atm') ?? 0)
  return failed >= job.attempts ? { ...job, attempts: attemptOf(fields) } : job
}

async function readClaimed(
  { database, clock, token }: Pick<Claiming, 'database' | 'clock'> & { readonly token: string },
  answer: unknown,
  leaseMsOf: (type: string) => number,
): Promise<Claimed> {
  const [lookIn, jobs] = Array.isArray(answer) ? answer : [-1, []]
  const values: readonly unknown[] = Array.isArray(jobs) ? jobs : []
  const leases: Lease[] = []
  const nowMs = clock.nowMs()
  for (let index = 0; index < values.length; index += 3) {
    const [queue, id, fields] = [String(values[index]), String(values[index + 1]), toFields(values[index + 2])]
    const type = typeOf(queue)
    const job = readStored(type, id, fields)
    const own = `${token}${index / 3 + 1}`
    if (job === null) {
      await database.run(dropScript(), [queue, id, own])
      continue
    }
    if (fields.has('mrStale')) {
      await database.run(supersedeScript(), [queue, id, own])
      continue
    }
    if (isScheduledRun(fields)) await scheduleNextRun(database, nowMs, { queue, bullId: id, fields })
    const verdict = fields.get('defa')
    leases.push({
      job: granted(job, fields),
      attempt: attemptOf(fields),
      token: own,
      expiresAtMs: nowMs + leaseMsOf(type),
      // A child has failed, or its workers died too often: BullMQ leaves it to the next worker to bury the job.
      ...(verdict !== undefined && { verdict }),
    })
  }
  return { leases, lookInMs: Number(lookIn) < 0 ? null : Number(lookIn) }
}
