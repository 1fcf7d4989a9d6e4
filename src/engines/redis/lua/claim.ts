import { READ_CLAIMED } from '../claimed-fields.ts'
import { compose } from '../scripts.ts'
import { PREPARE } from './claim-plain.ts'
import { IDENTITY, STARTED } from './links.ts'
import { NO_SLOTS, SLOTS, SORTED } from './slots.ts'

const FUNCTIONS = [
  'getNextDelayedTimestamp',
  'getQueueMetadata',
  'getRateLimitTTL',
  'prepareJobForProcessing',
  'promoteDelayedJobs',
]

const CLAIM = `
local worker, token, max, typeCount, isFull = ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6] == '1'
local types, nextAt = {}, nil

local function sooner(at)
  if nextAt == nil or at < nextAt then nextAt = at end
end

-- How many jobs the rate limit allows now. The claims of the last window are in a set by time.
local function limited(q, left, limit, window)
  if limit == nil then return left end
  local rate = q[':rate']
  call('ZREMRANGEBYSCORE', rate, '-inf', now - window)
  local free = limit - call('ZCARD', rate)
  if free <= 0 then
    sooner(tonumber(call('ZRANGE', rate, 0, 0, 'WITHSCORES')[2]) + window)
    return 0
  end
  return math.min(left, free)
end

-- Most queues of a worker with many types are empty most of the time, so several are asked at once.
local maySkip, ASKED_AT_ONCE = typeCount > 1 and not openSlots, 10
local function areEmpty(first, last)
  local keys = {}
  for index = first, last do
    local base = prefix .. ':' .. ARGV[7 * index] .. ':'
    keys[#keys + 1], keys[#keys + 2], keys[#keys + 3] = base .. 'wait', base .. 'prioritized', base .. 'delayed'
  end
  return call('EXISTS', unpack(keys)) == 0
end

-- Like BullMQ's moveToActive, but once per batch. Nil when nothing may be taken.
local function openQueue(index)
  local isEmpty = maySkip and areEmpty(index, index)
  if isEmpty and not isFull then return nil end
  local q = queueOf(ARGV[7 * index])
  local paused, max, duration = getQueueMetadata(q.meta, q.active, q.wait)
  if not isEmpty and isDelayedDue(q.delayed) then
    promoteDelayedJobs(q.delayed, q.marker, q.wait, q.prioritized, q.events, q.base, now, q.pc, paused)
  end
  if paused then
    -- The end of a pause, or of what fills a queue that BullMQ bounds, is not always announced.
    sooner(now + 1000)
    return nil
  end
  if isEmpty then return nil end
  return { q = q, max = tonumber(max or nil), duration = duration }
end

-- How many jobs wait.
local function countWaiting(kind)
  local q = kind.q
  kind.first, kind.others = call('LLEN', q.wait), call('ZCARD', q.prioritized)
  if kind.first + kind.others > 1 then kind.isBounded = call('HEXISTS', q.meta, 'concurrency') == 1 end
end

-- The next jobs of a queue, moved to its active ones. BullMQ's list goes before its priorities. The first write takes
-- something out, which Redis allows when its memory is full.
local function pop(kind, wanted)
  if kind.open then return popTenants(kind, wanted) end
  local q, ids = kind.q, {}
  if kind.first > 0 then ids = call('RPOP', q.wait, math.min(wanted, kind.first)) or {} end
  kind.first = kind.first - #ids
  if #ids < wanted and kind.others > 0 then
    -- Without their scores, which ZPOPMIN would write out for each.
    local last = wanted - #ids - 1
    local first = call('ZRANGE', q.prioritized, 0, last)
    call('ZREMRANGEBYRANK', q.prioritized, 0, last)
    if #ids == 0 then ids = first else for _, id in ipairs(first) do ids[#ids + 1] = id end end
    kind.others = kind.others - #first
  end
  if #ids > 0 then call('LPUSH', q.active, unpack(ids)) end
  return ids
end

-- Whether the limits set in BullMQ itself allow one more.
local function mayTake(kind)
  local q = kind.q
  if kind.isBounded and getQueueMetadata(q.meta, q.active, q.wait) then return false end
  if kind.max == nil then return true end
  local wait = getRateLimitTTL(kind.max, q.limiter)
  if wait > 0 then sooner(now + wait) end
  return wait <= 0
end

local function openType(index)
  local at, kind = 7 * index, openQueue(index)
  if kind then
    kind.lease, kind.limit, kind.window = ARGV[at + 1], tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
    kind.expires = endOf(kind.lease)
    kind.left = limited(kind.q, tonumber(ARGV[at + 2]), kind.limit, kind.window)
    if kind.left > 0 then
      if openSlots and ARGV[at + 5] ~= '' then openSlots(kind, tonumber(ARGV[at + 5]), ARGV[at + 6]) end
      countWaiting(kind)
      types[#types + 1] = kind
    end
  end
end

for first = 1, typeCount, ASKED_AT_ONCE do
  local last = math.min(typeCount, first + ASKED_AT_ONCE - 1)
  if isFull or not maySkip or not areEmpty(first, last) then
    for index = first, last do openType(index) end
  end
end

local claimed, count = {}, 0

-- \`prepare\` where BullMQ's own limit counts starts.
local function prepareLimited(kind, id, own)
  local q, opts = kind.q, { token = own, lockDuration = kind.lease, name = worker }
  if not pcall(prepareJobForProcessing, q.base, q.limiter, q.events, id, now, kind.max, kind.duration, q.marker, opts) then
    call('HSET', q.base .. id, 'ats', 0)
    prepareJobForProcessing(q.base, q.limiter, q.events, id, now, kind.max, kind.duration, q.marker, opts)
  end
  local fields = readClaimed(q.base .. id)
  return fields.err and {} or fields
end

-- Takes up to so many jobs. False when there was none, or none may be taken.
local function take(kind, wanted)
  local q = kind.q
  if not mayTake(kind) then return false end
  local ids = pop(kind, (kind.max or kind.isBounded) and 1 or wanted)
  for _, id in ipairs(ids) do
    count = count + 1
    local own = token .. count
    local fields
    if kind.max then fields = prepareLimited(kind, id, own) else fields = prepare(q, id, own, kind.expires) end
    claimed[3 * count - 2], claimed[3 * count - 1], claimed[3 * count] = q.name, id, fields
    kind.left = kind.left - 1
    if kind.limit then
      call('ZADD', q[':rate'], now, own)
      -- The claims of a window survive a clock that is set forward by up to a day.
      call('PEXPIRE', q[':rate'], kind.window + 86400000)
      if kind.left == 0 then sooner(now + kind.window) end
    end
    started(q, id, fields)
  end
  kind.isTaken = kind.isTaken or #ids > 0
  if kind.free then kind.free = kind.free - #ids end
  return #ids > 0
end

-- The first job of a queue: priority, arrival, and id, which orders arrivals of one millisecond. BullMQ's priority 0 goes
-- first.
local function look(kind)
  local q = kind.q
  local id, score
  if kind.open then
    local first = firstOfTenants(kind)
    if first then id, score = first.id, first.score end
  elseif kind.first > 0 then
    id, score = call('LINDEX', q.wait, -1), 0
  elseif kind.others > 0 then
    local first = call('ZRANGE', q.prioritized, 0, 0, 'WITHSCORES')
    id, score = first[1], tonumber(first[2]) or 0
    if score < 0 then score = score + SORTED end
  end
  local rank = math.floor((score or 0) / 4294967296)
  kind.rank, kind.id = id and rank or nil, id or nil
  if id then
    local times = call('HMGET', q.base .. id, 'mrRun', 'timestamp')
    kind.came = tonumber(times[1] or times[2] or nil) or 0
  end
end

local function isBefore(one, other)
  if one.rank ~= other.rank then return one.rank < other.rank end
  if one.came ~= other.came then return one.came < other.came end
  return one.id < other.id
end

if #types == 1 then
  local kind = types[1]
  while count < max and kind.left > 0 and take(kind, math.min(kind.left, max - count)) do end
else
  for _, kind in ipairs(types) do look(kind) end
  while count < max do
    local best
    for _, kind in ipairs(types) do
      if kind.left > 0 and kind.rank and (best == nil or isBefore(kind, best)) then best = kind end
    end
    if best == nil then break end
    if take(best, 1) then look(best) else best.left = 0 end
  end
end
for _, kind in ipairs(types) do
  local q = kind.q
  local isMore = kind.first + kind.others > 0
  if kind.slots then isMore = closeSlots(kind) end
  -- BullMQ adds its marker after every start. Where nothing is left, all whom it wakes would look in vain.
  if kind.isTaken then
    if isMore or call('EXISTS', q.delayed) == 1 then call('ZADD', q.marker, 0, '0') else call('ZREM', q.marker, '0') end
  end
  -- BullMQ's counter of arrivals restarts when none waits.
  if not isMore then call('DEL', q.pc) end
end
if count < max then
  for _, kind in ipairs(types) do
    if kind.hasMore then sooner(now) end
    local at = getNextDelayedTimestamp(kind.q.delayed)
    if at then sooner(at) end
  end
end
return { nextAt and math.max(0, nextAt - now) or -1, claimed }
`

const SHARED = [IDENTITY, READ_CLAIMED, STARTED, PREPARE, SORTED]

/**
 * ARGV: time, worker, token, max, number of types, 1 to find out whether empty queues are paused, then for each type: queue,
 * lease (ms), bound, limit, window (ms), slots, 'tenant' if they are of each tenant. Answers when to look again (ms from now, -1: never) and three values for each job: queue, id and
 * what `readClaimed` found. The n-th job has the token followed by n.
 */
export const claimScript = compose('claim', { functions: FUNCTIONS }, ...SHARED, NO_SLOTS, CLAIM)

/** The same where a type has slots. */
export const claimSlotsScript = compose('claim-slots', { functions: FUNCTIONS }, ...SHARED, SLOTS, CLAIM)
