import { compose, GOES_ON_WHEN_FULL } from '../scripts.ts'
import { HISTORY } from './history.ts'
import { ENDED, IDENTITY, LINKS } from './links.ts'
import { REMOVAL, REMOVAL_BULL } from './removal.ts'

/** What a job's end leaves to those that waited for it, and why a token no longer holds. */
const FENCE = `
-- 'cancelled' or 'expired' for who presents a token that does not hold.
local function lossOf(q, id)
  return call('HGET', q.base .. id, 'mrEnded') == 'cancelled' and 'cancelled' or 'expired'
end

local function holds(q, id, token)
  return call('GET', q.base .. id .. ':lock') == token
end
`

/** `finish(q, id, s, removes)`: BullMQ's own step from active to completed; `ring(q)` after a batch. */
const FINISH = `
local function finishKeys(q, id, set)
  return { q.wait, q.active, q.prioritized, q.events, q.stalled, q.limiter, q.delayed, q.paused, q.meta, q.pc, set,
    q.base .. id, q['metrics:' .. string.match(set, '[^:]*$')], q.marker }
end

local ALL, NONE = { count = -1 }, { count = 0 }

local function finish(q, id, s, removes)
  local opts = cmsgpack.pack({ token = s.token, keepJobs = removes and NONE or ALL, maxMetricsSize = '', attempts = 0 })
  local code = bull_moveToFinished(finishKeys(q, id, q.completed),
    { id, now, 'returnvalue', s.text, 'completed', '0', q.base, opts, cmsgpack.pack({ 'mrTook', s.number }) })
  if code < 0 then return code end
  if removes then
    call('ZREM', own('index'), publicId(q, id) .. ':' .. q.name)
  elseif s.attempt > 1 then
    call('HDEL', q.base .. id, 'mrError', 'failedReason', 'stacktrace')
  end
  return 0
end

-- A queue that BullMQ's own limit had filled has room now, and nobody else tells those who wait.
local function ring(q)
  if call('HEXISTS', q.meta, 'concurrency') == 1 then call('ZADD', q.marker, 0, '0') end
end
`

/** The four outcomes. Each answers BullMQ's code: below 0 the token did not hold, and nothing has changed. */
const OUTCOMES = `
local function complete(q, id, s)
  local more = s.isLinked and moreOf(q, id) or {}
  -- Somebody who comes after it may still ask for its result.
  local removes = s.keep == 0 and not isNeeded(q, id)
  -- Afterwards its hash is gone, and with it what it came after.
  if removes and s.isLinked and holds(q, id, s.token) then unlink(q, id) end
  local code = finish(q, id, s, removes)
  if code < 0 then return code end
  if removes and more.latest then forgetVersion(q, more.latest.key) end
  if s.keep == 0 and not removes then call('HSET', q.base .. id, 'mrGoes', 1) end
  over(q, id, more, not removes)
  if s.keep and s.keep > 0 then keepNewest(q, 'completed', s.keep, s.keepIsOwn) end
  return 0
end

-- BullMQ's dashboards show the stacks of the last attempts.
local function stacksWith(q, id, stack)
  local ok, stacks = pcall(cjson.decode, call('HGET', q.base .. id, 'stacktrace') or '[]')
  if not ok or type(stacks) ~= 'table' then stacks = {} end
  stacks[#stacks + 1] = stack
  while #stacks > 10 do table.remove(stacks, 1) end
  return cjson.encode(stacks)
end

-- The traces of this start go to the history, and the error into the hash.
local function failed(q, id, s, last)
  local error = cjson.decode(s.text)
  if not isReaped(s.token) then noteStart(q, id, s.attempt) end
  note(q, id, 'failed', s.attempt, s.worker, { error = error })
  if last == 'retried' then note(q, id, last, s.attempt, nil, { delayMs = s.number })
  elseif last then note(q, id, last, s.attempt) end
  return { 'mrError', s.text, 'mrAt', now, 'failedReason', error.message, 'stacktrace', stacksWith(q, id, s.stack) }
end

local function dead(q, id, s)
  local fields = failed(q, id, s, 'dead')
  local opts = cmsgpack.pack({ token = s.token, keepJobs = ALL, maxMetricsSize = '', attempts = 0 })
  local code = bull_moveToFinished(finishKeys(q, id, q.failed),
    { id, now, 'failedReason', fields[6], 'failed', '0', q.base, opts, cmsgpack.pack(fields) })
  over(q, id, s.isLinked and moreOf(q, id) or {}, false)
  if s.keep == 0 then purgeSurplus(q, id) elseif s.keep then keepNewest(q, 'failed', s.keep, s.keepIsOwn) end
  return code
end

local function delayed(q, id, s, fields, skips)
  fields[#fields + 1] = 'mrRun'
  fields[#fields + 1] = now + s.number
  return bull_moveToDelayed(
    { q.marker, q.active, q.prioritized, q.delayed, q.base .. id, q.events, q.meta, q.stalled, q.wait, q.limiter, q.pc },
    { q.base, now, id, s.token, s.number, skips, cmsgpack.pack(fields), '0', '' })
end

local function retry(q, id, s)
  local fields = failed(q, id, s, 'retried')
  if s.number > 0 then return delayed(q, id, s, fields, '0') end
  fields[#fields + 1] = 'mrRun'
  fields[#fields + 1] = now
  return bull_retryJob(
    { q.active, q.wait, q.paused, q.base .. id, q.meta, q.events, q.delayed, q.prioritized, q.pc, q.marker, q.stalled },
    { q.base, now, 'LPUSH', id, s.token, cmsgpack.pack(fields) })
end

local function release(q, id, s)
  if not isReaped(s.token) then noteStart(q, id, s.attempt) end
  note(q, id, 'released', s.attempt - 1, s.worker, { reason = s.text, delayMs = s.number })
  if s.number > 0 then return delayed(q, id, s, { 'mrAt', now }, '1') end
  call('HSET', q.base .. id, 'mrAt', now)
  local code = bull_moveJobFromActiveToWait(
    { q.active, q.wait, q.stalled, q.paused, q.meta, q.limiter, q.prioritized, q.marker, q.events },
    { id, s.token, q.base .. id })
  -- BullMQ tells nobody of a prioritized job that it puts back.
  call('ZADD', q.marker, 0, '0')
  return code
end

-- Everything but a completion: a version that a newer one waits for is not wanted any more.
local function giveBack(q, id, s, apply)
  if call('EXISTS', q.base .. id) == 0 or not holds(q, id, s.token) then return -2 end
  local latest = s.isLinked and moreOf(q, id).latest
  local newer = latest and successorOf(q, id, latest.key)
  if newer then
    if s.kind ~= 'release' then
      failed(q, id, s)
      call('HSET', q.base .. id, 'mrError', s.text)
    end
    ended(q, id, 'superseded', { by = newer }, s.kind ~= 'release')
    return 0
  end
  local code = apply(q, id, s)
  if code >= 0 and latest and s.kind ~= 'dead' then
    call('HDEL', q[':latest:' .. latest.key], 'running')
    call('HSET', q[':latest:' .. latest.key], 'queued', id)
  end
  if code >= 0 and s.isLinked and s.kind ~= 'dead' then waitAgain(q, id) end
  return code
end
`

/**
 * ARGV: time, worker, number of settlements, then for each: queue, id, token, attempt, kind, text (result, error or
 * reason), number (duration or delay), how many finished ones of the type stay, 1 if that is the job's own number, 1 if the job has ties, stack. Answers for each '' or why it was lost.
 */
export const settleScript = compose(
  'settle',
  { scripts: ['moveToFinished', 'moveToDelayed', 'retryJob', 'moveJobFromActiveToWait', ...REMOVAL_BULL.scripts] },
  GOES_ON_WHEN_FULL,
  HISTORY,
  LINKS,
  ENDED,
  REMOVAL,
  FENCE,
  FINISH,
  OUTCOMES,
  `
local answers, queues = {}, {}
local applied = { retry = retry, dead = dead, release = release }
for index = 1, tonumber(ARGV[3]) do
  local at = 4 + 11 * (index - 1)
  local name, id = ARGV[at], ARGV[at + 1]
  local q = queues[name] or queueOf(name)
  queues[name] = q
  local s = {
    token = ARGV[at + 2], attempt = tonumber(ARGV[at + 3]), kind = ARGV[at + 4], text = ARGV[at + 5],
    number = tonumber(ARGV[at + 6]), keep = tonumber(ARGV[at + 7]), keepIsOwn = ARGV[at + 8] == '1',
    isLinked = ARGV[at + 9] == '1', stack = ARGV[at + 10], worker = ARGV[2],
  }
  local code = s.kind == 'complete' and complete(q, id, s) or giveBack(q, id, s, applied[s.kind])
  answers[index] = code < 0 and lossOf(q, id) or ''
end
for _, q in pairs(queues) do ring(q) end
return answers
`,
)

/**
 * BullMQ's moveToFinished for a job without parent, children or deduplication, in half as many commands: what holds for
 * a queue is done once for the batch. test/bullmq pins the text that this follows. Nil where that script has to be used.
 */
const FINISH_PLAIN = `
local function openQueue(name)
  local q = queueOf(name)
  trimEvents(q.meta, q.events)
  return { q = q, hasStalled = call('EXISTS', q.stalled) == 1 }
end

local function finishPlain(queue, id, s, removes)
  local q, key = queue.q, queue.q.base .. id
  if not holds(q, id, s.token) then return -2 end
  local facts = call('HMGET', key, 'name', 'parentKey', 'deid')
  if not facts[1] or facts[2] or facts[3] then return nil end
  if call('LREM', q.active, -1, id) < 1 then return nil end
  call('DEL', key .. ':lock')
  if queue.hasStalled then call('SREM', q.stalled, id) end
  if removes then
    removeJobKeys(key)
    call('ZREM', own('index'), publicId(q, id) .. ':' .. q.name)
  else
    call('HINCRBY', key, 'atm', 1)
    call('ZADD', q.completed, now, id)
    call('HSET', key, 'returnvalue', s.text, 'finishedOn', now, 'mrTook', s.number)
    if s.attempt > 1 then call('HDEL', key, 'mrError', 'failedReason', 'stacktrace') end
  end
  call('XADD', q.events, '*', 'event', 'completed', 'jobId', id, 'returnvalue', s.text, 'prev', 'active')
  return 0
end

local function closeQueue(q)
  if call('EXISTS', q.wait, q.active, q.prioritized) == 0 then call('XADD', q.events, '*', 'event', 'drained') end
  ring(q)
end
`

/**
 * The usual end of the usual job: completed, without ties, and no number of its type to keep. One that others come after
 * is left to `settleScript`: its answer is 'tied'. ARGV: time, number of jobs, then for each: queue, id, token, attempt,
 * result, duration, 1 if it is not kept.
 */
export const completeScript = compose(
  'complete',
  { scripts: ['moveToFinished'], functions: ['removeJobKeys', 'trimEvents'] },
  GOES_ON_WHEN_FULL,
  IDENTITY,
  FENCE,
  FINISH,
  FINISH_PLAIN,
  `
local answers, queues = {}, {}
for index = 1, tonumber(ARGV[2]) do
  local at = 3 + 7 * (index - 1)
  local name, id = ARGV[at], ARGV[at + 1]
  local queue = queues[name] or openQueue(name)
  queues[name] = queue
  local q = queue.q
  local after, key = own('after:' .. publicId(q, id)), q.base .. id
  -- In one question: whether others come after it, and whether BullMQ knows of children.
  local isTied = call('EXISTS', after, key .. ':dependencies', key .. ':unsuccessful') > 0
  if isTied and call('EXISTS', after) == 1 then
    answers[index] = 'tied'
  else
    local s = { token = ARGV[at + 2], attempt = tonumber(ARGV[at + 3]), text = ARGV[at + 4], number = tonumber(ARGV[at + 5]) }
    local removes = ARGV[at + 6] == '1'
    local code = not isTied and finishPlain(queue, id, s, removes) or finish(q, id, s, removes)
    answers[index] = code < 0 and lossOf(q, id) or ''
  end
end
for _, queue in pairs(queues) do closeQueue(queue.q) end
return answers
`,
)

/** ARGV: time, lease (ms), number of leases, then for each: queue, id, token. Answers for each '' or why it was lost. */
export const renewScript = compose(
  'renew',
  {},
  GOES_ON_WHEN_FULL,
  FENCE,
  `
local answers, queues = {}, {}
for index = 1, tonumber(ARGV[3]) do
  local at = 4 + 3 * (index - 1)
  local q = queues[ARGV[at]] or queueOf(ARGV[at])
  queues[ARGV[at]] = q
  local id, token = ARGV[at + 1], ARGV[at + 2]
  if holds(q, id, token) then
    call('PEXPIRE', q.base .. id .. ':lock', ARGV[2])
    call('SREM', q.stalled, id)
    answers[index] = ''
  else
    answers[index] = lossOf(q, id)
  end
end
return answers
`,
)

/** ARGV: time, queue, id, token, progress. */
export const reportScript = compose(
  'report',
  { scripts: ['updateProgress'] },
  GOES_ON_WHEN_FULL,
  FENCE,
  `
local q, id = queueOf(ARGV[2]), ARGV[3]
if not holds(q, id, ARGV[4]) then return 0 end
return bull_updateProgress({ q.base .. id, q.events, q.meta }, { id, ARGV[5] }) == 0 and 1 or 0
`,
)
