import { at, READ_CLAIMED } from '../claimed-fields.ts'
import { compose } from '../scripts.ts'
import { IDENTITY, STARTED } from './links.ts'

/** `prepare(q, id, own, expires)`: what a claim does to a job that it has moved to the active ones. */
export const PREPARE = `
-- BullMQ's number of this start. If another program wrote no number there, it starts again; we do not use it.
local function nextStart(fields)
  local value = fields[${at('ats')}]
  return value and string.match(value, '^%d+$') and #value < 16 and value + 1 or '1'
end

-- BullMQ's prepareJobForProcessing in half as many commands; the marker comes once per batch. test/bullmq pins the text
-- that this follows. A key that holds no job is left as it is: without fields, the job is dropped.
local function prepare(q, id, own, expires)
  local key = q.base .. id
  local fields = readClaimed(key)
  call('SET', key .. ':lock', own, 'PXAT', expires)
  call('XADD', q.events, '*', 'event', 'active', 'jobId', id, 'prev', 'waiting')
  if fields.err or not (fields[${at('name')}] or fields[${at('data')}]) then return {} end
  call('HSET', key, 'processedOn', nowText, 'pb', ARGV[2], 'ats', nextStart(fields))
  return fields
end

-- When a lease that begins now ends by the server's clock. Redis would make this of a duration with every command.
local function endOf(lease)
  local from = now
  if ARGV[1] ~= '' then
    local time = call('TIME')
    from = time[1] * 1000 + math.floor(time[2] / 1000)
  end
  return string.format('%d', from + lease)
end
`

/**
 * Claims of one type without limits and slots, what most workers make: the steps of `claimScript` without any that such a
 * claim does not need, since for one job Redis takes longer to set up a script than to run it. Where BullMQ pauses or limits
 * the queue it has done nothing and answers nothing, and `claimScript` does it. ARGV: time, worker, token, max, queue, lease (ms).
 */
export const claimPlainScript = compose(
  'claim-plain',
  { functions: ['promoteDelayedJobs'] },
  IDENTITY,
  READ_CLAIMED,
  STARTED,
  PREPARE,
  `
local token, max, base = ARGV[3], tonumber(ARGV[4]), prefix .. ':' .. ARGV[5] .. ':'
local wait, active, prioritized, marker, pc = base .. 'wait', base .. 'active', base .. 'prioritized', base .. 'marker', base .. 'pc'
local q = { name = ARGV[5], base = base, events = base .. 'events' }
local limits = call('HMGET', base .. 'meta', 'paused', 'concurrency', 'max')
if limits[1] or limits[2] or limits[3] then return false end
local function nextDelayed() return tonumber(call('ZRANGE', base .. 'delayed', '0', '0', 'WITHSCORES')[2]) end
-- A number costs Redis less than a list, and mostly there are none.
local delayed = call('ZCARD', base .. 'delayed') > 0 and nextDelayed()
if delayed and delayed < (now + 1) * 4096 then
  promoteDelayedJobs(base .. 'delayed', marker, wait, prioritized, q.events, base, now, pc, false)
  delayed = nextDelayed()
end

-- BullMQ's list goes before its priorities. The first write takes something out, which Redis allows when its memory is full.
local ids = call('RPOP', wait, ARGV[4]) or {}
if #ids < max then
  local last = tostring(max - #ids - 1)
  local first = call('ZRANGE', prioritized, '0', last)
  if #first > 0 then call('ZREMRANGEBYRANK', prioritized, '0', last) end
  if #ids == 0 then ids = first else for _, id in ipairs(first) do ids[#ids + 1] = id end end
end

local claimed, isFull = {}, #ids == max
if #ids > 0 then
  call('LPUSH', active, unpack(ids))
  local expires = endOf(ARGV[6])
  for nth, id in ipairs(ids) do
    local fields = prepare(q, id, token .. nth, expires)
    claimed[3 * nth - 2], claimed[3 * nth - 1], claimed[3 * nth] = q.name, id, fields
    started(q, id, fields)
  end
end
local isMore = isFull and call('EXISTS', wait, prioritized) > 0
if #ids > 0 then
  if isMore or delayed then call('ZADD', marker, '0', '0') else call('ZREM', marker, '0') end
end
if not isMore then call('DEL', pc) end
return { delayed and not isFull and math.max(0, delayed / 4096 - now) or -1, claimed }
`,
)
