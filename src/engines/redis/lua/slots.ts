/**
 * Slots over all workers, as Lua. A slot is an entry of BullMQ's `active`: nothing else is counted, so whatever takes a job out
 * of it frees the slot, once.
 *
 * Where each tenant has slots of its own, a claim first sorts what has arrived: into `::slots` by tenant, while the job stays
 * in BullMQ's `prioritized`, at its score minus 2^53. So a score of 0 or more tells what is not sorted yet, those who know nothing
 * of slots take the sorted jobs first, in the same order, and an entry is valid only while its job has that score.
 */
export const SORTED = 'local SORTED = 9007199254740992'

/** `wake(q)`: to be called after a step that may have taken jobs out of `active`. */
export const WAKE = `
-- A queue that BullMQ's own limit, or slots, had filled has room now, and nothing else wakes the waiting claims.
local function wake(q)
  local bounds = call('HMGET', q.meta, 'concurrency', 'mrSlots')
  local isHeldBack = bounds[2] and (tonumber(bounds[2]) or 0) > now and call('EXISTS', q.wait, q.prioritized) > 0
  if bounds[1] or isHeldBack then call('ZADD', q.marker, 0, '0') end
end
`

/** Instead of `SLOTS` where no type of a claim has slots. */
export const NO_SLOTS = 'local openSlots, popTenants, firstOfTenants, closeSlots'

/**
 * `openSlots(kind, max, by)` before a claim takes jobs of a type, and `closeSlots(kind)` after it; `kind.left` is lowered,
 * `kind.free` is how many slots of the type are left, `kind.open` has the tenants with a free slot. `popTenants` takes their jobs,
 * `firstOfTenants` is the most urgent of them.
 */
export const SLOTS = `
-- Each job is sorted once; this bounds how long one claim keeps the server busy. The next claim goes on.
local SORT_MAX, TENANTS_MAX, STALE_MAX = 1000, 128, 5000
local KEPT_MS, HELD_BACK_MS = 86400000, 600000

-- The tenant of a job as a text of 40 characters. A job without one, or of another program, is in the group of the empty name.
local function groupOf(q, id)
  local more, name = redis.pcall('HGET', q.base .. id, 'mr'), nil
  if type(more) == 'string' and string.find(more, '"tenant"', 1, true) then
    local isRead, read = pcall(cjson.decode, more)
    local tenant = isRead and type(read) == 'table' and read.tenant
    name = type(tenant) == 'table' and tenant.orgId
  end
  return redis.sha1hex(type(name) == 'string' and name or '')
end

-- Only where our key was lost, or had expired because nobody claimed for a day.
local function unsort(q)
  call('DEL', q[':slots'])
  repeat
    local page, back = call('ZRANGEBYSCORE', q.prioritized, '-inf', '(0', 'WITHSCORES', 'LIMIT', 0, 1000), {}
    for at = 1, #page, 2 do
      back[at], back[at + 1] = string.format('%.0f', math.max(0, page[at + 1] + SORTED)), page[at]
    end
    if #page > 0 then call('ZADD', q.prioritized, unpack(back)) end
  until #page == 0
end

-- BullMQ's list goes before its priorities, so its jobs get priority 0 in the order in which they came.
local function sortIn(kind)
  local q, scores, entries = kind.q, {}, {}
  local function add(id, score)
    scores[#scores + 1], scores[#scores + 2] = string.format('%.0f', score - SORTED), id
    entries[#entries + 1], entries[#entries + 2] = '0', groupOf(q, id) .. string.format('%016.0f', score) .. id
  end
  local listed = call('RPOP', q.wait, SORT_MAX) or {}
  if #listed > 0 then
    local arrival = call('INCRBY', q.pc, #listed) - #listed
    for index, id in ipairs(listed) do add(id, (arrival + index) % 4294967296) end
  end
  local arrived = call('ZRANGEBYSCORE', q.prioritized, 0, '+inf', 'WITHSCORES', 'LIMIT', 0, SORT_MAX - #listed)
  for at = 1, #arrived, 2 do add(arrived[at], tonumber(arrived[at + 1])) end
  if #scores > 0 then
    call('ZADD', q.prioritized, unpack(scores))
    call('ZADD', q[':slots'], unpack(entries))
  end
  kind.hasMore = #listed + #arrived / 2 == SORT_MAX
end

-- How many jobs of each tenant run. The hash only saves reading the jobs again; it is not what is counted.
local function runningOf(q)
  local active, running = call('LRANGE', q.active, 0, -1), {}
  if call('HLEN', q[':holders']) > 2 * #active + 100 then call('DEL', q[':holders']) end
  for from = 1, #active, 1000 do
    local to, new = math.min(from + 999, #active), {}
    local groups = call('HMGET', q[':holders'], unpack(active, from, to))
    for at = from, to do
      local group = groups[at - from + 1]
      if not group then
        group = groupOf(q, active[at])
        new[#new + 1], new[#new + 2] = active[at], group
      end
      running[group] = (running[group] or 0) + 1
    end
    if #new > 0 then call('HSET', q[':holders'], unpack(new)) end
  end
  return running
end

local function place(tenant, entry)
  tenant.entry, tenant.score, tenant.id = entry, tonumber(string.sub(entry, 41, 56)), string.sub(entry, 57)
end

-- Tenants with jobs and a free slot, from one that is drawn anew for each claim.
local function openTenants(kind)
  local q, open, running = kind.q, {}, runningOf(kind.q)
  local from = redis.sha1hex(ARGV[3])
  local at, to = from, '+'
  while #open < TENANTS_MAX do
    local entry = call('ZRANGEBYLEX', q[':slots'], '[' .. at, to, 'LIMIT', 0, 1)[1]
    if entry then
      local group = string.sub(entry, 1, 40)
      local tenant = { group = group, running = running[group] or 0 }
      place(tenant, entry)
      if tenant.running < kind.slots then open[#open + 1] = tenant end
      at = group .. '~'
    elseif to == '+' then
      at, to = '0', '(' .. from
    else
      break
    end
  end
  return open
end

-- Finds the first job of a tenant that still waits. Entries of jobs that others took, moved or removed are dropped.
local function advance(kind, tenant)
  local q, group = kind.q, tenant.group
  while kind.stale < STALE_MAX do
    local entry = call('ZRANGEBYLEX', q[':slots'], '[' .. group, '(' .. group .. '~', 'LIMIT', 0, 1)[1]
    if not entry then return false end
    place(tenant, entry)
    tenant.isKnown = tonumber(call('ZSCORE', q.prioritized, tenant.id) or nil) == tenant.score - SORTED
    if tenant.isKnown then return true end
    call('ZREM', q[':slots'], entry)
    kind.stale = kind.stale + 1
  end
  kind.hasMore = true
  return false
end

local function isMoreUrgent(one, other) return one.score < other.score end

local function isFairer(one, other)
  if one.running ~= other.running then return one.running < other.running end
  return isMoreUrgent(one, other)
end

local function bestOf(kind, isBetter)
  local open = kind.open
  while #open > 0 do
    local best = 1
    for index = 2, #open do
      if isBetter(open[index], open[best]) then best = index end
    end
    if open[best].isKnown then return open[best], best end
    if not advance(kind, open[best]) then table.remove(open, best) end
  end
end

local function firstOfTenants(kind) return bestOf(kind, isMoreUrgent) end

-- The tenant with the fewest running jobs is next.
local function popTenants(kind, wanted)
  local q, ids, holders = kind.q, {}, {}
  while #ids < wanted do
    local tenant, index = bestOf(kind, isFairer)
    if not tenant then break end
    call('ZREM', q.prioritized, tenant.id)
    call('ZREM', q[':slots'], tenant.entry)
    ids[#ids + 1] = tenant.id
    holders[#holders + 1], holders[#holders + 2] = tenant.id, tenant.group
    tenant.running = tenant.running + 1
    if tenant.running >= kind.slots or not advance(kind, tenant) then table.remove(kind.open, index) end
  end
  kind.others = kind.others - #ids
  if #ids > 0 then
    call('LPUSH', q.active, unpack(ids))
    call('HSET', q[':holders'], unpack(holders))
  end
  return ids
end

local function openSlots(kind, max, by)
  local q = kind.q
  -- With full memory Redis lets a script continue whose first write needs none.
  call('DEL', own('none'))
  kind.slots, kind.stale = max, 0
  if by ~= 'tenant' then
    kind.free = math.max(0, max - call('LLEN', q.active))
    kind.left = math.min(kind.left, kind.free)
    return
  end
  if call('ZCARD', q[':slots']) < call('ZCOUNT', q.prioritized, '-inf', '(0') then unsort(q) end
  sortIn(kind)
  kind.open = openTenants(kind)
  call('PEXPIRE', q[':slots'], KEPT_MS)
end

-- Answers whether jobs wait that may start. While slots hold jobs back, every step that frees one adds BullMQ's marker.
local function closeSlots(kind)
  local q = kind.q
  if kind.open then call('PEXPIRE', q[':holders'], KEPT_MS) end
  if kind.first + kind.others == 0 then return false end
  local known = tonumber(call('HGET', q.meta, 'mrSlots') or nil) or 0
  if known < now + HELD_BACK_MS / 2 then call('HSET', q.meta, 'mrSlots', string.format('%.0f', now + HELD_BACK_MS)) end
  if kind.open then return kind.hasMore or #kind.open > 0 end
  return kind.free > 0
end
`
