import { compose } from '../scripts.ts'
import { HISTORY } from './history.ts'
import { LINKS } from './links.ts'
import { REMOVAL, REMOVAL_BULL } from './removal.ts'

/**
 * `rowOf(q, id)`: a job as the answer has it: queue, BullMQ's id, place, when its lock runs out ('' without one) and the
 * fields of its hash.
 */
const ROWS = `
local function rowOf(q, id)
  local key, place, runsOut = q.base .. id, placeOf(q, id), ''
  if place == 'active' then
    local left = call('PTTL', key .. ':lock')
    runsOut = left >= 0 and string.format('%.0f', now + left) or ''
  end
  return { q.name, id, place, runsOut, call('HGETALL', key) }
end
`

/** ARGV: time, and ids as Millrace knows them. Answers a row for each, or 0. */
export const findScript = compose(
  'find',
  REMOVAL_BULL,
  HISTORY,
  LINKS,
  REMOVAL,
  ROWS,
  `
local rows = {}
for index = 2, #ARGV do
  local q, id = find(ARGV[index])
  rows[index - 1] = q and rowOf(q, id) or 0
end
return rows
`,
)

/** ARGV: time, id. Answers its row and the lines of its log, or 0. */
export const historyScript = compose(
  'history',
  REMOVAL_BULL,
  HISTORY,
  LINKS,
  REMOVAL,
  ROWS,
  `
local q, id = find(ARGV[2])
if not q then return 0 end
return { rowOf(q, id), call('LRANGE', q.base .. id .. ':logs', 0, -1) }
`,
)

/** ARGV: time, then for each job: queue, BullMQ's id. Answers a row for each. */
export const rowsScript = compose(
  'rows',
  REMOVAL_BULL,
  HISTORY,
  LINKS,
  REMOVAL,
  ROWS,
  `
local rows = {}
for at = 2, #ARGV, 2 do rows[at / 2] = rowOf(queueOf(ARGV[at]), ARGV[at + 1]) end
return rows
`,
)

/** ARGV: time, then for each job: queue, BullMQ's id. Answers 1 for each that is over or gone. */
export const overScript = compose(
  'over',
  {},
  `
local answers = {}
for at = 2, #ARGV, 2 do
  local fields = call('HMGET', queueOf(ARGV[at]).base .. ARGV[at + 1], 'name', 'finishedOn', 'mrEnded')
  answers[at / 2] = (not fields[1] or fields[2] or fields[3]) and 1 or 0
end
return answers
`,
)

/**
 * The jobs of some sets, if they are not many: foreign ones are in no index. ARGV: time, the most, names of sets with
 * commas, then queues (none: all). Answers queue and BullMQ's id of each in turn, or 0 when there are too many.
 */
export const gatherScript = compose(
  'gather',
  {},
  `
local queues, found, count = {}, {}, 0
for index = 4, #ARGV do queues[#queues + 1] = ARGV[index] end
if #queues == 0 then queues = call('SMEMBERS', KEYS[1]) end
local LISTS = { wait = true, paused = true, active = true }
for _, name in ipairs(queues) do
  for set in string.gmatch(ARGV[3], '[^,]+') do
    count = count + call(LISTS[set] and 'LLEN' or 'ZCARD', queueOf(name)[set])
    if count > tonumber(ARGV[2]) then return 0 end
  end
end
for _, name in ipairs(queues) do
  local q = queueOf(name)
  for set in string.gmatch(ARGV[3], '[^,]+') do
    for _, id in ipairs(call(LISTS[set] and 'LRANGE' or 'ZRANGE', q[set], 0, -1)) do
      found[#found + 1] = name
      found[#found + 1] = id
    end
  end
end
return found
`,
)

/**
 * One step through the index, the newest first; what is no longer there leaves it. ARGV: time, the entry or id to go on
 * below ('' for the newest), how many entries to look at, how many rows, queue ('' for all), places with commas ('' for
 * all). Answers where to go on ('' at the end) and rows.
 */
export const walkScript = compose(
  'walk',
  REMOVAL_BULL,
  HISTORY,
  LINKS,
  REMOVAL,
  ROWS,
  `
local most, limit, only = tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local places = {}
for place in string.gmatch(ARGV[6], '[^,]+') do places[place] = true end
local entries = call('ZREVRANGEBYLEX', own('index'), ARGV[2] == '' and '+' or '(' .. ARGV[2], '-', 'LIMIT', 0, most)
local rows, last = {}, ''
for _, entry in ipairs(entries) do
  if #rows == limit then break end
  last = entry
  local id, name = string.match(entry, '^(.*):([^:]*)$')
  if only == '' or name == only then
    local q = queueOf(name)
    local public = string.gsub(name, '/', ':') .. '#'
    if string.sub(id, 1, #public) == public then id = string.sub(id, #public + 1) end
    if call('EXISTS', q.base .. id) == 0 then
      call('ZREM', own('index'), entry)
    elseif ARGV[6] == '' or places[placeOf(q, id)] then
      rows[#rows + 1] = rowOf(q, id)
    end
  end
end
if #entries < most and #rows < limit then last = '' end
return { last, rows }
`,
)

/**
 * The score in waiting-children is minus the due time of a version that waits for an older one: that one is as good as
 * ready, while whoever waits for others is not. Answers for each queue: name, ready, delayed, active, completed, failed.
 */
export const countsScript = compose(
  'counts',
  {},
  `
local answers = {}
for _, name in ipairs(call('SMEMBERS', KEYS[1])) do
  local q = queueOf(name)
  local due = (now + 1) * 4096 - 1
  local waiting, versions = q['waiting-children'], call('ZCOUNT', q['waiting-children'], -now, '(0')
  answers[#answers + 1] = {
    name,
    call('LLEN', q.wait) + call('LLEN', q.paused) + call('ZCARD', q.prioritized) + call('ZCOUNT', q.delayed, '-inf', due)
      + versions,
    call('ZCOUNT', q.delayed, '(' .. string.format('%.0f', due), '+inf') + call('ZCARD', waiting) - versions,
    call('LLEN', q.active), call('ZCARD', q.completed), call('ZCARD', q.failed),
  }
end
return answers
`,
)

/**
 * Of each queue and each priority the job that has waited longest, and the first of those that wait for others. Within a
 * priority BullMQ's order is that of falling due. Answers rows, of which the caller takes the oldest.
 */
export const oldestScript = compose(
  'oldest',
  REMOVAL_BULL,
  HISTORY,
  LINKS,
  REMOVAL,
  ROWS,
  `
local rows = {}
local function add(q, ids)
  for _, id in ipairs(ids) do
    if call('EXISTS', q.base .. id) == 1 then rows[#rows + 1] = rowOf(q, id) end
  end
end
for _, name in ipairs(call('SMEMBERS', KEYS[1])) do
  local q = queueOf(name)
  add(q, call('LRANGE', q.wait, -1, -1))
  add(q, call('LRANGE', q.paused, -1, -1))
  add(q, call('ZRANGEBYSCORE', q.delayed, '-inf', (now + 1) * 4096 - 1, 'LIMIT', 0, 1))
  add(q, call('ZRANGEBYSCORE', q['waiting-children'], 0, now, 'LIMIT', 0, 1))
  add(q, call('ZREVRANGEBYSCORE', q['waiting-children'], '(0', -now, 'LIMIT', 0, 1))
  if call('ZCARD', q.prioritized) > 0 then
    for priority = 0, 10 do
      local from, to = priority * 4294967296, '(' .. string.format('%.0f', (priority + 1) * 4294967296)
      -- What was given back stands before the rest, in the order of arrival.
      add(q, call('ZRANGEBYSCORE', q.prioritized, from, to, 'LIMIT', 0, 2))
    end
    add(q, call('ZRANGEBYSCORE', q.prioritized, 11 * 4294967296, '+inf', 'LIMIT', 0, 1))
  end
end
return rows
`,
)
