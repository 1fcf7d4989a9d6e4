import { compose, GOES_ON_WHEN_FULL } from '../scripts.ts'
import { HISTORY } from './history.ts'
import { ENDED, LINKS, LINKS_BULL } from './links.ts'

/**
 * `untie(q, cursor)`: of those that wait for others, let go who waits in vain, because another program than ours has
 * finished, removed or put back what they waited for. Looks at a portion and answers how many that were, and where to go
 * on ('0': at the end).
 */
const UNTIE = `
local function untieVersion(q, id)
  local key = q[':latest:' .. moreOf(q, id).latest.key]
  local known = call('HMGET', key, 'queued', 'running')
  local queued, running = versionsOf(q, key, known[1], known[2])
  -- It may have been let go on the way.
  if not call('ZSCORE', q['waiting-children'], id) then return end
  if queued and queued ~= id then ended(q, id, 'superseded', { by = queued })
  elseif not running then letGo(q, id) end
end

local found = {}

local function untie(q, cursor)
  local page = call('ZSCAN', q['waiting-children'], cursor, 'COUNT', 200)
  for index = 1, #page[2], 2 do
    local id = page[2][index]
    local facts = call('HMGET', q.base .. id, 'mrAfter', 'mrSeq')
    if facts[1] then
      if not isHeld(cjson.decode(facts[1]), found) then letGo(q, id) end
    elseif facts[2] then
      untieVersion(q, id)
    end
  end
  return #page[2] / 2, page[1]
end
`

/**
 * Lets go who waits for others in vain: a portion, so that Redis is soon free for others. ARGV: time, where to go on in
 * the first queue ('0': at the beginning), queues. Answers how many queues are done, and where to go on in the next.
 */
export const untieScript = compose(
  'untie',
  LINKS_BULL,
  GOES_ON_WHEN_FULL,
  HISTORY,
  LINKS,
  ENDED,
  UNTIE,
  `
local looked, cursor = 0, ARGV[2]
for index = 3, #ARGV do
  local q = queueOf(ARGV[index])
  repeat
    local count
    count, cursor = untie(q, cursor)
    looked = looked + count
    if looked >= 200 and cursor ~= '0' then return { index - 3, cursor } end
  until cursor == '0'
  if looked >= 200 then return { index - 2, '0' } end
end
return { #ARGV - 2, '0' }
`,
)
