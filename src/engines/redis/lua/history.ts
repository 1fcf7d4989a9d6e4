import { HISTORY_MAX } from '../../../job/job.ts'

/**
 * The job's history beyond what its hash tells: JSON lines in BullMQ's own log of the job. `noteStart` is called before
 * the traces of a start are overwritten; a start that a reaper took over (its token begins with 'x') was noted then.
 */
export const HISTORY = `
local function attemptsOf(q, id)
  local counts = call('HMGET', q.base .. id, 'atm', 'stc')
  return (tonumber(counts[1] or nil) or 0) + (tonumber(counts[2] or nil) or 0)
end

local function note(q, id, event, attempt, worker, detail, at)
  local log = q.base .. id .. ':logs'
  local lines = call('RPUSH', log,
    cjson.encode({ at = at or now, event = event, attempt = attempt, worker = worker, detail = detail }))
  if lines > ${HISTORY_MAX} then call('LTRIM', log, -${HISTORY_MAX}, -1) end
end

local function noteStart(q, id, attempt)
  local start = call('HMGET', q.base .. id, 'processedOn', 'pb')
  note(q, id, 'started', attempt, start[2] or nil, nil, tonumber(start[1] or nil) or now)
end

local function isReaped(token)
  return string.sub(token, 1, 1) == 'x'
end

local function expired(q, id)
  local attempt = attemptsOf(q, id) + 1
  noteStart(q, id, attempt)
  note(q, id, 'expired', attempt, call('HGET', q.base .. id, 'pb') or nil)
end
`
