import { HISTORY_MAX } from '../../../job/job.ts'

/**
 * Adds events to a job's history: JSON lines in BullMQ's log of the job, for what its hash does not hold. `addStartEvent` is
 * called before the fields of a start are overwritten; when a reaper took over (token with 'x'), that was done already.
 */
export const HISTORY = `
local function attemptsOf(q, id)
  local counts = call('HMGET', q.base .. id, 'atm', 'stc')
  return (tonumber(counts[1] or nil) or 0) + (tonumber(counts[2] or nil) or 0)
end

-- What handlers said stands in the same list (job-logs.ts), and has bounds of its own.
local function isSaid(line)
  return string.sub(line, 1, 7) == '{"seq":'
end

local function dropOldestEvents(log)
  local all, events, dropped = call('LRANGE', log, 0, -1), 0, 0
  for _, line in ipairs(all) do
    if not isSaid(line) then events = events + 1 end
  end
  for at, line in ipairs(all) do
    if events - dropped <= ${HISTORY_MAX} then break end
    if not isSaid(line) then
      call('LSET', log, at - 1, '')
      dropped = dropped + 1
    end
  end
  if dropped > 0 then call('LREM', log, dropped, '') end
end

local function addEvent(q, id, event, attempt, worker, detail, at)
  local log = q.base .. id .. ':logs'
  local lines = call('RPUSH', log,
    cjson.encode({ at = at or now, event = event, attempt = attempt, worker = worker, detail = detail }))
  if lines > ${HISTORY_MAX} then dropOldestEvents(log) end
end

local function addStartEvent(q, id, attempt)
  local start = call('HMGET', q.base .. id, 'processedOn', 'pb')
  addEvent(q, id, 'started', attempt, start[2] or nil, nil, tonumber(start[1] or nil) or now)
end

local function isReaped(token)
  return string.sub(token, 1, 1) == 'x'
end

local function expired(q, id)
  local attempt = attemptsOf(q, id) + 1
  addStartEvent(q, id, attempt)
  addEvent(q, id, 'expired', attempt, call('HGET', q.base .. id, 'pb') or nil)
end
`
