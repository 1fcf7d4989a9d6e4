import { at } from '../claimed-fields.ts'

/**
 * What links jobs to each other, as Lua: idempotency keys, versions of a latest key, and predecessors. A job that must wait
 * is in BullMQ's `waiting-children`, and BullMQ's own script moves it out.
 *
 * `over(q, id)` is called when a job finishes in any way, and `changed(id)` whenever its state may unblock others or block
 * them again. A job without links costs one EXISTS.
 */
export const LINKS_BULL = { scripts: ['releaseParentIfNoPendingDependencies'] } as const

/** Millrace's id of a job, and the fields that BullMQ does not have. */
export const IDENTITY = `
local function publicId(q, id)
  -- From the beginning to the end: to look for a character that does not fit costs three times as much.
  if #id == 26 and string.find(id, '^[0-9A-HJKMNP-TV-Z]+$') then return id end
  return string.gsub(q.name, '/', ':') .. '#' .. id
end

local function moreOf(q, id)
  local ok, more = pcall(cjson.decode, call('HGET', q.base .. id, 'mr') or '{}')
  return ok and type(more) == 'table' and more or {}
end
`

/** For claims, with \`READ_CLAIMED\` before it. */
export const MEND = `
-- Starts are counted with HINCRBY. A value of another program that is not a number would fail every batch with the job.
local function mendCount(q, id, fields)
  local count = fields[${at('atm')}]
  if not count or count == '0' or (string.find(count, '^%d+$') and #count < 16) then return end
  call('HSET', q.base .. id, 'atm', 0)
  fields[${at('atm')}] = '0'
end
`

/** `started(q, id, fields)` is called for each job that is claimed. */
export const STARTED = `${MEND}
-- Adds a foreign job to the index and its queue to the types; marks a version of a latest key as the running one.
local function started(q, id, fields)
  local public = publicId(q, id)
  if public ~= id then
    call('ZADD', own('index'), 0, public .. ':' .. q.name)
    call('SADD', KEYS[1], q.name)
  end
  mendCount(q, id, fields)
  local version = fields[${at('mrSeq')}]
  if not version then return end
  local key = q.base .. ':latest:' .. moreOf(q, id).latest.key
  local known = call('HMGET', key, 'seq', 'queued')
  -- Only another program puts back a version that a newer one has followed.
  if known[1] and tonumber(version) < tonumber(known[1]) then
    fields[${at('mrStale')}] = '1'
  else
    call('HSET', key, 'running', id)
    if known[2] == id then call('HDEL', key, 'queued') end
  end
end
`

const RELATIONS = `
local ended, forget

-- Queue and BullMQ's id by Millrace's id; nil when the job does not exist.
local function find(id)
  local at = string.find(id, '#', 1, true)
  local q, name
  if at then
    name, id = string.gsub(string.sub(id, 1, at - 1), ':', '/'), string.sub(id, at + 1)
  else
    local found = call('ZRANGEBYLEX', own('index'), '[' .. id .. ':', '(' .. id .. ';', 'LIMIT', 0, 1)
    if found[1] then name = string.sub(found[1], #id + 2) end
  end
  if name then
    q = queueOf(name)
    if call('EXISTS', q.base .. id) == 1 then return q, id end
    -- In other queues BullMQ's number is another job.
    if at then return nil end
  end
  for _, other in ipairs(call('SMEMBERS', KEYS[1])) do
    q = queueOf(other)
    if call('EXISTS', q.base .. id) == 1 then return q, id end
  end
end

-- Moves a job out of waiting-children, to its place or to its delay.
local function unblock(q, id)
  local run = tonumber(call('HGET', q.base .. id, 'mrRun') or nil) or 0
  call('HSET', q.base .. id, 'delay', math.max(0, run - now))
  bull_releaseParentIfNoPendingDependencies(
    { q.base .. id, q.base .. id .. ':dependencies' }, { string.sub(q.base, 1, -2), id, now })
end

-- Takes a job out of the queue. True if it was waiting for a worker.
local function unqueue(q, id)
  return call('ZREM', q.prioritized, id) + call('ZREM', q.delayed, id) > 0 or call('LREM', q.wait, 1, id) > 0
end

local function holdsBack(first, ifDead)
  local q, id = find(first)
  if q == nil or call('ZSCORE', q.completed, id) or call('HEXISTS', q.base .. id, 'mrEnded') == 1 then return false end
  if call('ZSCORE', q.failed, id) then return ifDead == 'wait' end
  return true
end

-- \`known\`: a cache of answers about predecessors.
local function isHeld(after, known)
  for _, first in ipairs(after.ids) do
    local question = first .. ' ' .. tostring(after.ifDead)
    local answer = known and known[question]
    if answer == nil then answer = holdsBack(first, after.ifDead) end
    if known then known[question] = answer end
    if answer then return true end
  end
  return false
end

-- A predecessor may have been replayed since the job was unblocked.
local function waitAgain(q, id)
  local after = call('HGET', q.base .. id, 'mrAfter')
  if after and isHeld(cjson.decode(after)) and unqueue(q, id) then call('ZADD', q['waiting-children'], now, id) end
end

-- Unblocks the jobs that come after a job, or makes them wait again.
local function changed(first)
  local key = own('after:' .. first)
  if call('EXISTS', key) == 0 then return end
  for _, member in ipairs(call('SMEMBERS', key)) do
    local name, id = string.match(member, '^([^:]*):(.*)$')
    local q = queueOf(name)
    local after = call('HGET', q.base .. id, 'mrAfter')
    if after then
      local held, waits = isHeld(cjson.decode(after)), call('ZSCORE', q['waiting-children'], id)
      if waits and not held then unblock(q, id)
      elseif held and not waits and unqueue(q, id) then call('ZADD', q['waiting-children'], now, id) end
    end
  end
end

local function unlink(q, id)
  local after = call('HGET', q.base .. id, 'mrAfter')
  if not after then return end
  for _, first in ipairs(cjson.decode(after).ids) do
    -- A finished job that was only kept for its successors goes with the last of them. Scripts that remove nothing leave
    -- it to retention.
    if call('SREM', own('after:' .. first), q.name .. ':' .. id) == 1 and forget and call('EXISTS', own('after:' .. first)) == 0 then
      local home, firstId = find(first)
      if home and call('HEXISTS', home.base .. firstId, 'mrGoes') == 1 then forget(home, firstId) end
    end
  end
end

-- The version neither runs nor waits any more; the next may start.
local function endVersion(q, id, latest)
  local key = q[':latest:' .. latest]
  local known = call('HMGET', key, 'running', 'queued')
  if known[1] == id then
    call('HDEL', key, 'running')
    if known[2] and known[2] ~= id then unblock(q, known[2]) end
  elseif known[2] == id then
    call('HDEL', key, 'queued')
  end
end

-- The newer version that waits behind this one. If there is one, this one must not run again.
local function successorOf(q, id, latest)
  local queued = call('HGET', q[':latest:' .. latest], 'queued')
  return queued and queued ~= id and queued or nil
end

-- BullMQ's workers start jobs and put them back without updating our records.
local function isActive(q, id)
  return call('EXISTS', q.base .. id .. ':lock') == 1 or call('LPOS', q.active, id) ~= false
end

-- Neither finished nor gone. Other programs finish and remove jobs without updating our records.
local function isLive(q, id)
  local facts = call('HMGET', q.base .. id, 'name', 'finishedOn', 'mrEnded')
  return facts[1] and not facts[2] and not facts[3]
end

-- The live job that has a key.
local function holderOf(key)
  local held = call('HGET', own('keys'), key)
  if not held then return nil end
  local name, id = string.match(held, '^([^:]*):(.*)$')
  if isLive(queueOf(name), id) then return id end
  call('HDEL', own('keys'), key)
  return nil
end

local function freeKey(q, id, key)
  if call('HGET', own('keys'), key) == q.name .. ':' .. id then call('HDEL', own('keys'), key) end
end

-- \`isFinal\`: it cannot be replayed, so it no longer needs its predecessors.
local function over(q, id, more, isFinal)
  if more.key then freeKey(q, id, more.key) end
  if more.latest then endVersion(q, id, more.latest.key) end
  if isFinal then unlink(q, id) end
  changed(publicId(q, id))
end

-- A job of the key is removed. With the last one the key is idle: its highest version is remembered for a week, as long
-- as completed jobs stay by default, so that older versions are refused meanwhile.
local function forgetVersion(q, latest)
  if call('HINCRBY', q[':latest:' .. latest], 'held', -1) <= 0 then call('PEXPIRE', q[':latest:' .. latest], 604800000) end
end

-- Takes the place of the replaced version, so that frequent updates cannot starve a key.
local function inherit(q, job, older)
  local times = call('HMGET', q.base .. older, 'mrRun', 'timestamp')
  local due = tonumber(times[1] or times[2] or nil) or now
  if due > now + job.delay then return end
  local score = tonumber(call('ZSCORE', q.prioritized, older) or nil)
  if score then job.place = score % 4294967296 end
  job.run, job.delay = string.format('%.0f', due), math.max(0, due - now)
end

-- The waiting and the running version (false: none), corrected for what other programs started, ended or put back.
local function versionsOf(q, key, queued, running)
  queued, running = queued and isLive(q, queued) and queued, running and isLive(q, running) and running
  if running and not isActive(q, running) then
    -- It waits again. If a newer one waits too, it is superseded.
    if queued then ended(q, running, 'superseded', { by = queued }) else queued = running end
    running = false
  elseif queued and not running and isActive(q, queued) then
    queued, running = false, queued
  end
  if running then call('HSET', key, 'running', running) else call('HDEL', key, 'running') end
  return queued, running
end

local function versioned(q, job)
  local key = q[':latest:' .. job.latest]
  local known = call('HMGET', key, 'seq', 'queued', 'running')
  local highest = tonumber(known[1] or nil) or 0
  local seq = tonumber(job.seq) or highest + 1
  if seq <= highest then return 'stale', false end
  local queued, running = versionsOf(q, key, known[2], known[3])
  job.version = seq
  call('HSET', key, 'seq', seq, 'queued', job.id)
  if call('HINCRBY', key, 'held', 1) == 1 then call('PERSIST', key) end
  if not queued then return 'enqueued', running ~= false end
  inherit(q, job, queued)
  ended(q, queued, 'superseded', { by = job.id })
  return 'replaced', running ~= false
end

-- The status of a new job's receipt, and whether it must wait for others.
local function linked(q, job)
  local status, waits = 'enqueued', false
  if job.latest ~= '' then status, waits = versioned(q, job) end
  if status ~= 'stale' and job.after ~= nil then
    for _, first in ipairs(job.after.ids) do call('SADD', own('after:' .. first), q.name .. ':' .. job.id) end
    waits = isHeld(job.after)
  end
  return status, waits
end
`

export const LINKS: string = [IDENTITY, RELATIONS].join('')

/**
 * `ended(q, id, how, detail, isRecorded)`: the job will not run, in whatever state it was. Its hash stays.
 * `isRecorded`: the current start is in the history already.
 */
export const ENDED = `
ended = function(q, id, how, detail, isRecorded)
  unqueue(q, id)
  call('ZREM', q['waiting-children'], id)
  call('ZREM', q.failed, id)
  if call('LREM', q.active, -1, id) > 0 then
    local attempt = attemptsOf(q, id) + 1
    if not isRecorded then addStartEvent(q, id, attempt) end
    addEvent(q, id, how, attempt, call('HGET', q.base .. id, 'pb') or nil, detail)
    call('HINCRBY', q.base .. id, 'atm', 1)
    call('DEL', q.base .. id .. ':lock')
    call('SREM', q.stalled, id)
  else
    addEvent(q, id, how, attemptsOf(q, id), nil, detail)
    -- The times of a past start are in the history; the fields of a job that was waiting again would mislead.
    if how ~= 'discarded' then call('HDEL', q.base .. id, 'processedOn', 'pb') end
  end
  call('HSET', q.base .. id, 'mrEnded', how, 'finishedOn', now, 'mrAt', now)
  call('ZADD', q[':ended'], now, id)
  over(q, id, moreOf(q, id), how ~= 'discarded')
end
`
