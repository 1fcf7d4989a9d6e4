/** Claims that nobody is to run: their answer was lost, or what they brought must not run. */
import { compose, GOES_ON_WHEN_FULL } from '../scripts.ts'
import { HISTORY } from './history.ts'
import { ENDED, IDENTITY, LINKS, LINKS_BULL } from './links.ts'

/**
 * What a claim holds whose answer was lost: the locks whose tokens begin with the claim's. What a reaper took over is
 * expired again at once, and its history as if it had not been looked at. ARGV: time, token, queues (none: every).
 * Answers how many there are, and four values for each that was ready: queue, id, token and the fields of its hash. The
 * one that was claimed last comes first.
 */
export const takeBackScript = compose(
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
  -- The last two lines are those of the claim: the start and its end.
  local start = cjson.decode(call('LINDEX', q.base .. id .. ':logs', -2))
  call('LTRIM', q.base .. id .. ':logs', 0, -3)
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

/**
 * A version of a latest key that another program put back after a newer one was there: it must not run. Nothing has
 * told a handler of its start. ARGV: time, queue, id, token.
 */
export const supersedeScript = compose(
  'supersede',
  LINKS_BULL,
  GOES_ON_WHEN_FULL,
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
return 1
`,
)

/** A job whose hash is gone is nobody's. ARGV: time, queue, id, token. */
export const dropScript = compose(
  'drop',
  {},
  GOES_ON_WHEN_FULL,
  IDENTITY,
  `
local q, id = queueOf(ARGV[2]), ARGV[3]
if call('GET', q.base .. id .. ':lock') ~= ARGV[4] then return 0 end
call('LREM', q.active, -1, id)
call('ZREM', own('index'), publicId(q, id) .. ':' .. q.name)
return call('DEL', q.base .. id, q.base .. id .. ':lock', q.base .. id .. ':logs')
`,
)
