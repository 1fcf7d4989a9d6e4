import { RETENTION_BY, type Retention, type RetentionRule, type Sweep, type SweepStep } from '../../engine/retention.ts'
import type { RedisDatabase } from './database.ts'
import type { FinishWaits } from './finish-waits.ts'
import { queueOf } from './keys.ts'
import { HISTORY } from './lua/history.ts'
import { LINKS } from './lua/links.ts'
import { REMOVAL, REMOVAL_BULL } from './lua/removal.ts'
import { listOf } from './rows.ts'
import { compose, GOES_ON_WHEN_FULL } from './scripts.ts'

/**
 * Jobs measured in each of BullMQ's sets. Larger sets are sampled in even steps and the mean counts for all, so the
 * result is off by as much as payload sizes differ.
 */
const SAMPLES = 25

export function createRetention({
  database,
  finishWaits,
}: {
  readonly database: RedisDatabase
  readonly finishWaits: FinishWaits
}): Retention {
  return {
    async sweep(rules, step) {
      const swept = await sweep(database, rules, step)
      if (swept.removed > 0) finishWaits.notify()
      return swept
    },
    usedBytes: async () => Number(await database.run(bytesScript(), [SAMPLES])),
    // What is removed is free at once.
    async compact() {
      await database.ping()
      return false
    },
  }
}

async function sweep(
  database: RedisDatabase,
  rules: readonly RetentionRule[],
  { from, max, dryRun = false, by = RETENTION_BY }: SweepStep,
): Promise<Sweep> {
  const ruleArgs = rules.flatMap(({ what, type, beforeMs }) => [
    what,
    type === undefined ? '' : queueOf(type),
    beforeMs === null ? '' : beforeMs,
  ])
  const args = [from ?? '', Math.max(1, max), dryRun ? '1' : '0', by.who, by.reason, ...ruleArgs]
  const [removed, next] = listOf(await database.run(sweepScript(), args))
  return { removed: Number(removed), next: next === '' || next === undefined ? null : String(next) }
}

/**
 * ARGV: time, the entry of the index to go on after ('' for the first), how many to look at, 1 to remove nothing, who,
 * reason, then for each rule: what, queue ('' for those that no other names), before ('' keeps all). Answers how many
 * went and where to go on ('' at the end).
 */
export const sweepScript = compose(
  'sweep',
  REMOVAL_BULL,
  GOES_ON_WHEN_FULL,
  HISTORY,
  LINKS,
  REMOVAL,
  `
local most, isDry, by = tonumber(ARGV[3]), ARGV[4] == '1', { who = ARGV[5], reason = ARGV[6] }
local rules = { completed = {}, ended = {}, dead = {} }
for at = 7, #ARGV, 3 do
  local rule = rules[ARGV[at]]
  if rule[ARGV[at + 1]] == nil then rule[ARGV[at + 1]] = tonumber(ARGV[at + 2]) or false end
end

local function finishedAs(q, id, how)
  if how then return 'ended' end
  if call('ZSCORE', q.completed, id) then return 'completed' end
  return call('ZSCORE', q.failed, id) and 'dead' or nil
end

-- Queue and BullMQ's id of an index entry, and whether a rule removes it.
local function judge(entry)
  local id, name = string.match(entry, '^(.*):([^:]*)$')
  local q = queueOf(name)
  local public = string.gsub(name, '/', ':') .. '#'
  if string.sub(id, 1, #public) == public then id = string.sub(id, #public + 1) end
  local facts = call('HMGET', q.base .. id, 'name', 'mrEnded', 'finishedOn')
  if not facts[1] then
    if call('EXISTS', q.base .. id) == 0 and not isDry then call('ZREM', own('index'), entry) end
    return q, id, nil
  end
  local at = tonumber(facts[3] or nil)
  local what = at and finishedAs(q, id, facts[2])
  if not what then return q, id, nil end
  local before = rules[what][name]
  if before == nil then before = rules[what][''] end
  if before and at < before and not isNeeded(q, id) then return q, id, facts[2] or what end
  return q, id, nil
end

local entries = call('ZRANGEBYLEX', own('index'), ARGV[2] == '' and '-' or '(' .. ARGV[2], '+', 'LIMIT', 0, most)
local removed = 0
for _, entry in ipairs(entries) do
  local q, id, what = judge(entry)
  local gone = what and (isDry or
    (((what == 'dead' or what == 'discarded') and purge(q, id, by)) or (what ~= 'dead' and what ~= 'discarded' and forget(q, id))))
  if gone then removed = removed + 1 end
end
return { removed, #entries < most and '' or entries[#entries] }
`,
)

/**
 * Jobs measured in each set: all of a small one, so many in even steps of a large one. ARGV: time, samples. Answers bytes.
 */
export const bytesScript = compose(
  'bytes',
  {},
  `
local samples, total = tonumber(ARGV[2]), 0
-- All fields of a hash are measured, because one is the payload; a few members of a set are enough.
local function size(key, samples) return call('MEMORY', 'USAGE', key, 'SAMPLES', samples or 5) or 0 end
local function add(q, set, isList)
  local count, sum, seen = call(isList and 'LLEN' or 'ZCARD', q[set]), 0, 0
  if count == 0 then return end
  for sample = 0, math.min(samples, count) - 1 do
    local rank = math.floor(sample * count / math.min(samples, count))
    local id = call(isList and 'LRANGE' or 'ZRANGE', q[set], rank, rank)[1]
    if id then
      seen = seen + 1
      sum = sum + size(q.base .. id, 0) + size(q.base .. id .. ':logs')
    end
  end
  if seen > 0 then total = total + sum / seen * count end
  total = total + size(q[set])
end
for _, name in ipairs(call('SMEMBERS', KEYS[1])) do
  local q = queueOf(name)
  for _, set in ipairs({ 'prioritized', 'delayed', 'waiting-children', 'completed', 'failed', ':ended' }) do add(q, set, false) end
  for _, set in ipairs({ 'wait', 'paused', 'active' }) do add(q, set, true) end
  total = total + size(q[':slots'])
end
total = total + size(own('index')) + size(own('keys'))
return string.format('%.0f', total)
`,
)
