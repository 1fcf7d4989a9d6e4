import { randomBytes } from 'node:crypto'
import type { ClaimRequest, SubscribedType } from '../../engine/engine.ts'
import type { Lease } from '../../engine/outcome.ts'
import type { StoredJob } from '../../job/job.ts'
import { LEASE_DEFAULT_MS } from '../../job/options.ts'
import type { Clock } from '../../time/clock.ts'
import { isScheduledRun, scheduleNextRun } from './bullmq-schedulers.ts'
import { claimedFields } from './claimed-fields.ts'
import type { RedisDatabase } from './database.ts'
import { queueOf, typeOf } from './keys.ts'
import { claimScript, claimSlotsScript } from './lua/claim.ts'
import { claimPlainScript } from './lua/claim-plain.ts'
import { HISTORY } from './lua/history.ts'
import { ENDED, IDENTITY, LINKS, LINKS_BULL } from './lua/links.ts'
import { WAKE } from './lua/slots.ts'
import { attemptOf, type Fields, readStored } from './rows.ts'
import { compose, GOES_ON_WHEN_FULL } from './scripts.ts'

export interface Claimed {
  readonly leases: readonly Lease[]
  /** When a job may become claimable without a wake-up; null: never. */
  readonly lookInMs: number | null
}

export interface Claiming {
  readonly database: RedisDatabase
  readonly clock: Clock
  readonly worker: string
  /** Each job's token is this followed by a number. */
  readonly token: string
}

/** Every claim has new tokens: a random prefix of this process, the number of the call, the number of the job. */
const ORIGIN = randomBytes(6).toString('base64url')
let calls = 0

export function nextToken(from: ClaimRequest['from']): string {
  calls += 1
  return `${from === 'expired' ? REAPED : 'c'}${ORIGIN}.${calls.toString(36)}.`
}

/** What the token of a reaper's claim begins with; Lua's `isReaped` looks for the same. */
const REAPED = 'x'

export async function claimReady(
  { database, clock, worker, token }: Claiming,
  types: readonly SubscribedType[],
  { max, perType = {}, isFull }: Pick<ClaimRequest, 'max' | 'perType'> & { readonly isFull: boolean },
): Promise<Claimed> {
  const wanted = types
    .map((subscribed) => ({ ...subscribed, bound: Math.min(max, perType[subscribed.type] ?? max) }))
    .filter(({ bound }) => bound > 0)
  if (wanted.length === 0) return { leases: [], lookInMs: null }
  const beganMs = clock.monotonicMs()
  const asked = { worker, token, max, isFull }
  const answer = (await askPlainly(database, wanted, asked)) ?? (await ask(database, wanted, asked))
  const leaseOf = new Map(wanted.map(({ type, leaseMs }) => [type, leaseMs]))
  const claimed = await readClaimed({ database, clock, token }, answer, (type) => leaseOf.get(type) ?? LEASE_DEFAULT_MS)
  const limited = new Set(wanted.flatMap(({ type, limit }) => (limit === undefined ? [] : [type])))
  if (limited.size > 0)
    moveStarts(
      database,
      claimed.leases.filter(({ job }) => limited.has(job.type)),
      { clock, beganMs },
    )
  return claimed
}

interface Asked {
  readonly worker: string
  readonly token: string
  readonly max: number
  readonly isFull: boolean
}

interface Wanted extends SubscribedType {
  readonly bound: number
}

/** Null where more is needed; then nothing has been done. */
async function askPlainly(
  database: RedisDatabase,
  wanted: readonly Wanted[],
  { worker, token, max }: Asked,
): Promise<unknown> {
  const [only, second] = wanted
  if (only === undefined || second !== undefined || only.limit != null || only.slots != null) return null
  return database.run(claimPlainScript(), [worker, token, Math.min(max, only.bound), queueOf(only.type), only.leaseMs])
}

function ask(
  database: RedisDatabase,
  wanted: readonly Wanted[],
  { worker, token, max, isFull }: Asked,
): Promise<unknown> {
  const args = wanted.flatMap(({ type, leaseMs, bound, limit, slots }) => [
    queueOf(type),
    leaseMs,
    bound,
    limit?.max ?? '',
    limit?.perMs ?? '',
    slots?.max ?? '',
    slots?.by ?? '',
  ])
  const script = wanted.some(({ slots }) => slots !== undefined) ? claimSlotsScript() : claimScript()
  return database.run(script, [worker, token, max, wanted.length, isFull ? 1 : 0, ...args])
}

/**
 * Runs after this turn of the event loop, in which the handlers start, and is not awaited. If it fails, the window of the
 * limit counts from the claim, and the next claim reports what is wrong with the server.
 */
function moveStarts(
  database: RedisDatabase,
  leases: readonly Lease[],
  { clock, beganMs }: { readonly clock: Clock; readonly beganMs: number },
): void {
  if (leases.length === 0) return
  const args = leases.flatMap(({ job, token }) => [queueOf(job.type), token])
  setImmediate(() => {
    const tookMs = Math.ceil(clock.monotonicMs() - beganMs)
    database.run(moveStartsScript(), [tookMs, ...args]).catch(() => {})
  })
}

/**
 * A claim is recorded when the script runs; its handlers start when the answer arrives. The window of a rate limit counts
 * from the starts. A start moves by no more than the claim took, because the server's clock may have been set meanwhile.
 * ARGV: time, how long the claim took (ms), then for each claim of a limited type: queue, token.
 */
const moveStartsScript = compose(
  'move-starts',
  {},
  GOES_ON_WHEN_FULL,
  `
for at = 3, #ARGV, 2 do
  local rate = queueOf(ARGV[at])[':rate']
  local claimed = tonumber(call('ZSCORE', rate, ARGV[at + 1]) or nil)
  if claimed then call('ZADD', rate, 'XX', math.max(claimed, math.min(now, claimed + ARGV[2])), ARGV[at + 1]) end
end
return 1
`,
)

/** A job that waits although its attempts are used up was put back by BullMQ's `retry`, which grants one more start. */
function withGrantedStart(job: StoredJob, fields: Fields): StoredJob {
  const failed = Number(fields.get('atm') ?? 0)
  return failed >= job.attempts ? { ...job, attempts: attemptOf(fields) } : job
}

export async function readClaimed(
  { database, clock, token }: Pick<Claiming, 'database' | 'clock'> & { readonly token: string },
  answer: unknown,
  leaseMsOf: (type: string) => number,
): Promise<Claimed> {
  const [lookIn, jobs] = Array.isArray(answer) ? answer : [-1, []]
  const values: readonly unknown[] = Array.isArray(jobs) ? jobs : []
  const leases: Lease[] = []
  const nowMs = clock.nowMs()
  for (let index = 0; index < values.length; index += 3) {
    const [queue, id, fields] = [String(values[index]), String(values[index + 1]), claimedFields(values[index + 2])]
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
      job: withGrantedStart(job, fields),
      attempt: attemptOf(fields),
      token: own,
      expiresAtMs: nowMs + leaseMsOf(type),
      // A child failed, or its workers died too often: in BullMQ the next worker makes the job a dead letter.
      ...(verdict !== undefined && { verdict }),
    })
  }
  return { leases, lookInMs: Number(lookIn) < 0 ? null : Number(lookIn) }
}

/**
 * A version of a latest key that another program put back although a newer one exists: it must not run, and no handler
 * has started. ARGV: time, queue, id, token.
 */
const supersedeScript = compose(
  'supersede',
  LINKS_BULL,
  GOES_ON_WHEN_FULL,
  WAKE,
  HISTORY,
  LINKS,
  ENDED,
  `
local q, id = queueOf(ARGV[2]), ARGV[3]
if call('GET', q.base .. id .. ':lock') ~= ARGV[4] then return 0 end
call('LREM', q.active, -1, id)
call('DEL', q.base .. id .. ':lock')
local known = call('HMGET', q[':latest:' .. moreOf(q, id).latest.key], 'running', 'queued')
ended(q, id, 'superseded', { by = known[1] or known[2] or nil })
wake(q)
return 1
`,
)

/** Removes what is left of a job whose hash is gone. ARGV: time, queue, id, token. */
const dropScript = compose(
  'drop',
  {},
  GOES_ON_WHEN_FULL,
  WAKE,
  IDENTITY,
  `
local q, id = queueOf(ARGV[2]), ARGV[3]
if call('GET', q.base .. id .. ':lock') ~= ARGV[4] then return 0 end
call('LREM', q.active, -1, id)
wake(q)
call('ZREM', own('index'), publicId(q, id) .. ':' .. q.name)
return call('DEL', q.base .. id, q.base .. id .. ':lock', q.base .. id .. ':logs')
`,
)
