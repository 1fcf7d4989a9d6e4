import type { Subscription } from '../../engine/engine.ts'
import { LOST_CLAIM_REASON } from '../../engine/lost-claims.ts'
import type { Settlement } from '../../engine/outcome.ts'
import { REAPER_LEASE_MS } from '../../engine/subscriptions.ts'
import { type Claimed, type Claiming, readClaimed } from './claim.ts'
import { READ_CLAIMED } from './claimed-fields.ts'
import type { RedisDatabase } from './database.ts'
import { queueOf, typeOf } from './keys.ts'
import { HISTORY } from './lua/history.ts'
import { ENDED, LINKS, LINKS_BULL, MEND } from './lua/links.ts'
import { attemptOf, listOf, readStored, toFields } from './rows.ts'
import { compose, GOES_ON_WHEN_FULL } from './scripts.ts'
import { settleLeases } from './settle.ts'

/** Jobs whose lease expired, of the given types or of every type that Millrace has seen here. */
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

/**
 * Active jobs whose lock expired. They are handed over with their attempt unchanged.
 * ARGV: time, worker, token, max, lease (ms) for types not named, number of types (-1: every), then for each: queue, lease.
 * Answers when the next lock runs out (ms from now, -1: none is held) and three values for each job, like `claimScript`.
 */
const claimExpiredScript = compose(
  'claim-expired',
  {},
  GOES_ON_WHEN_FULL,
  HISTORY,
  READ_CLAIMED,
  MEND,
  `
local worker, token, max = ARGV[2], ARGV[3], tonumber(ARGV[4])
call('SET', own('reaped'), string.format('%.0f', now))
local queues, leases = {}, {}
if ARGV[6] == '-1' then
  queues = call('SMEMBERS', KEYS[1])
else
  for index = 1, tonumber(ARGV[6]) do
    queues[index] = ARGV[5 + 2 * index]
    leases[queues[index]] = ARGV[6 + 2 * index]
  end
end
local claimed, count, nextIn = {}, 0, -1
for _, name in ipairs(queues) do
  local q = queueOf(name)
  -- The list's end was claimed first.
  local active = call('LRANGE', q.active, 0, -1)
  for index = #active, 1, -1 do
    if count >= max then break end
    local id = active[index]
    local left = call('PTTL', q.base .. id .. ':lock')
    if left == -2 then
      count = count + 1
      expired(q, id)
      call('SET', q.base .. id .. ':lock', token .. count, 'PX', leases[name] or ARGV[5])
      call('HSET', q.base .. id, 'pb', worker)
      local fields = readClaimed(q.base .. id)
      mendCount(q, id, fields)
      claimed[3 * count - 2], claimed[3 * count - 1], claimed[3 * count] = name, id, fields
    elseif left >= 0 and (nextIn < 0 or left < nextIn) then
      nextIn = left
    end
  end
end
return { nextIn, claimed }
`,
)

/** A claim whose answer was lost. */
export interface LostClaim {
  readonly token: string
  readonly worker: string
  readonly types: Subscription['types']
}

/**
 * Undoes those of the claims that happened, and returns them. Jobs that were ready are ready again, and the start does not
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

/**
 * What a claim with a lost answer holds: the locks whose tokens begin with the claim's. What a reaper took over is expired
 * again at once, with the claim's events removed. ARGV: time, token, queues (none: every).
 * Answers how many there are, and four values for each that was ready: queue, id, token and the fields of its hash, the
 * last claimed first.
 */
const takeBackScript = compose(
  'take-back',
  {},
  GOES_ON_WHEN_FULL,
  HISTORY,
  `
local token, queues, found = ARGV[2], {}, { 0 }
for index = 3, #ARGV do queues[#queues + 1] = ARGV[index] end
if #queues == 0 then queues = call('SMEMBERS', KEYS[1]) end

local function expireAgain(q, id)
  call('DEL', q.base .. id .. ':lock')
  -- The claim added the last two events: the start and its expiry. What the old holder said may stand behind them.
  local log, added, start = q.base .. id .. ':logs', 0, {}
  local all = call('LRANGE', log, 0, -1)
  for at = #all, 1, -1 do
    if added == 2 then break end
    if not isSaid(all[at]) then
      added, start = added + 1, cjson.decode(all[at])
      call('LSET', log, at - 1, '')
    end
  end
  call('LREM', log, -added, '')
  if start.worker then call('HSET', q.base .. id, 'pb', start.worker) else call('HDEL', q.base .. id, 'pb') end
end

for _, name in ipairs(queues) do
  local q = queueOf(name)
  for _, id in ipairs(call('LRANGE', q.active, 0, -1)) do
    local held = call('GET', q.base .. id .. ':lock')
    if held and string.sub(held, 1, #token) == token then
      found[1] = found[1] + 1
      if isReaped(held) then
        expireAgain(q, id)
      else
        found[#found + 1] = name
        found[#found + 1] = id
        found[#found + 1] = held
        found[#found + 1] = call('HGETALL', q.base .. id)
      end
    end
  end
end
return found
`,
)

/** Queues per script. Most have no jobs that wait for others. */
const RELEASE_QUEUES = 100

/** Unblocks all jobs that wait for others in vain, in small steps, so that other clients do not wait long. */
export async function releaseStrandedJobs(
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
    const answer = listOf(
      await database.run(releaseStrandedScript(), [cursor, ...queues.slice(at, at + RELEASE_QUEUES)]),
    )
    at += Number(answer[0])
    cursor = String(answer[1])
  }
}

/**
 * `releaseStranded(q, cursor)`: unblocks jobs that wait in vain, because another program finished, removed or put back what
 * they waited for. Reads one page and answers its size and the next cursor ('0': at the end).
 */
const RELEASE_STRANDED = `
local function releaseVersion(q, id)
  local key = q[':latest:' .. moreOf(q, id).latest.key]
  local known = call('HMGET', key, 'queued', 'running')
  local queued, running = versionsOf(q, key, known[1], known[2])
  -- versionsOf may have unblocked it.
  if not call('ZSCORE', q['waiting-children'], id) then return end
  if queued and queued ~= id then ended(q, id, 'superseded', { by = queued })
  elseif not running then unblock(q, id) end
end

local found = {}

local function releaseStranded(q, cursor)
  local page = call('ZSCAN', q['waiting-children'], cursor, 'COUNT', 200)
  for index = 1, #page[2], 2 do
    local id = page[2][index]
    local facts = call('HMGET', q.base .. id, 'mrAfter', 'mrSeq')
    if facts[1] then
      if not isHeld(cjson.decode(facts[1]), found) then unblock(q, id) end
    elseif facts[2] then
      releaseVersion(q, id)
    end
  end
  return #page[2] / 2, page[1]
end
`

/**
 * Unblocks jobs that wait in vain, a few pages per call. ARGV: time, cursor in the first queue ('0': at the beginning),
 * queues. Answers how many queues are done, and the cursor in the next.
 */
const releaseStrandedScript = compose(
  'release-stranded',
  LINKS_BULL,
  GOES_ON_WHEN_FULL,
  HISTORY,
  LINKS,
  ENDED,
  RELEASE_STRANDED,
  `
local looked, cursor = 0, ARGV[2]
for index = 3, #ARGV do
  local q = queueOf(ARGV[index])
  repeat
    local count
    count, cursor = releaseStranded(q, cursor)
    looked = looked + count
    if looked >= 200 and cursor ~= '0' then return { index - 3, cursor } end
  until cursor == '0'
  if looked >= 200 then return { index - 2, '0' } end
end
return { #ARGV - 2, '0' }
`,
)
