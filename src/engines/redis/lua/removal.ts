import { LINKS_BULL } from './links.ts'

/** BullMQ's scripts that `REMOVAL` and `LINKS` call. */
export const REMOVAL_BULL = { scripts: [...LINKS_BULL.scripts, 'removeJob'] } as const

/**
 * How jobs are removed, as Lua: `forget` removes one with all our records of it, `applyKeepLimit` those beyond the limit,
 * and `audit` writes an entry in the same step. It comes after `HISTORY` and `LINKS`.
 *
 * An audit entry holds the raw fields of the hash, so the acting script can write it; the reader makes the view. Payloads,
 * results and stacks stay out of it.
 */
export const REMOVAL = `
local UNAUDITED = { data = true, returnvalue = true, progress = true, stacktrace = true, failedReason = true }

-- The name of BullMQ's set that a job is in, 'ended' for ours, 'unknown' for none. A long list is not searched.
local function placeOf(q, id)
  if call('HEXISTS', q.base .. id, 'mrEnded') == 1 then return 'ended' end
  for _, set in ipairs({ 'completed', 'failed', 'prioritized', 'delayed', 'waiting-children' }) do
    if call('ZSCORE', q[set], id) then return set end
  end
  if call('EXISTS', q.base .. id .. ':lock') == 1 or call('LPOS', q.active, id) then return 'active' end
  if call('LLEN', q.wait) > 1000 or call('LPOS', q.wait, id) then return 'wait' end
  if call('LLEN', q.paused) > 1000 or call('LPOS', q.paused, id) then return 'paused' end
  return 'unknown'
end

-- A job as an audit entry stores it.
local function snapshot(q, id)
  local flat, fields = call('HGETALL', q.base .. id), {}
  for at = 1, #flat, 2 do
    if not UNAUDITED[flat[at]] then fields[flat[at]] = flat[at + 1] end
  end
  local isRead, error = pcall(cjson.decode, fields.mrError or '')
  if isRead and type(error) == 'table' then
    error.stack = nil
    fields.mrError = cjson.encode(error)
  else fields.mrError = nil end
  return { place = placeOf(q, id), fields = fields }
end

-- by: who and reason. edit: what changed in the payload, as JSON text.
local function audit(q, id, action, by, before, after, edit)
  call('RPUSH', own('audit'), cjson.encode({
    at = now, who = by.who, reason = by.reason, action = action, queue = q.name, id = id,
    before = before, after = after, edit = edit,
  }))
end

-- A job that may still run comes after it, and will read its result.
local function isNeeded(q, id)
  return call('EXISTS', own('after:' .. publicId(q, id))) == 1
end

-- Removes a finished job with all its records. False for one that BullMQ holds: locked, or the next run of a scheduler.
forget = function(q, id)
  local more, public = moreOf(q, id), publicId(q, id)
  -- Later its hash is gone, and with it the list of its predecessors.
  unlink(q, id)
  if bull_removeJob({ q.base .. id, q['repeat'] }, { id, '0', q.base }) ~= 1 then return false end
  call('ZREM', q[':ended'], id)
  call('ZREM', own('index'), public .. ':' .. q.name)
  if more.key then freeKey(q, id, more.key) end
  if more.latest then forgetVersion(q, more.latest.key) end
  changed(public)
  call('DEL', own('after:' .. public))
  return true
end

-- Removes a dead letter or a discarded job, with an audit entry.
local function purge(q, id, by)
  local before = snapshot(q, id)
  if not forget(q, id) then return false end
  audit(q, id, 'purge', by, before)
  return true
end

-- Removes a dead letter because of removeOnFail.
local function purgeBeyondKeepLimit(q, id)
  if not isNeeded(q, id) then purge(q, id, { who = 'retention', reason = 'more than removeOnFail keeps' }) end
end

local OWN_KEEP = { completed = 'keepCompleted', failed = 'keepDead' }

-- isBeyondKeepLimit of engine/retention.ts: a job's own option decides about that job alone, a definition's about all that have none.
local function isBeyondKeepLimit(q, set, id, newer, isOwn)
  local options = moreOf(q, id).options
  local own
  if type(options) == 'table' then own = options[OWN_KEEP[set]] end
  if own == nil then return not isOwn end
  return type(own) == 'number' and own <= newer
end

-- Removes 'completed' or 'failed' jobs beyond the limit, newest first. At most a hundred per call: the first time a type
-- has a limit there may be a million.
local function applyKeepLimit(q, set, keep, isOwn)
  if call('ZCARD', q[set]) <= keep then return end
  for index, id in ipairs(call('ZREVRANGE', q[set], keep, keep + 99)) do
    if isBeyondKeepLimit(q, set, id, keep + index - 1, isOwn) then
      if set == 'failed' then purgeBeyondKeepLimit(q, id) elseif not isNeeded(q, id) then forget(q, id) end
    end
  end
end
`
