import type { Counts, TypeCounts } from '../../engine/engine.ts'
import type { JobView } from '../../job/job.ts'
import type { RedisDatabase } from './database.ts'
import { typeOf } from './keys.ts'
import { SORTED } from './lua/slots.ts'
import { composeRead, listOf, toRows, toView } from './rows.ts'
import { compose } from './scripts.ts'

export async function countJobs(database: RedisDatabase): Promise<Counts> {
  const counts: Record<string, TypeCounts> = {}
  for (const answer of listOf(await database.run(countsScript(), []))) {
    const [queue, ...numbers] = listOf(answer)
    const [ready = 0, delayed = 0, inProgress = 0, completed = 0, dead = 0] = numbers.map(Number)
    if (ready + delayed + inProgress + completed + dead === 0) continue
    counts[typeOf(String(queue))] = { ready, delayed, inProgress, completed, dead }
  }
  return counts
}

/**
 * In waiting-children the score of a version that waits for an older one is minus its due time: it counts as ready. A job
 * that waits for predecessors does not. Answers for each queue: name, ready, delayed, active, completed, failed.
 */
const countsScript = compose(
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

export async function oldestDue(database: RedisDatabase): Promise<JobView | null> {
  let oldest: JobView | null = null
  for (const row of toRows(await database.run(oldestScript(), []))) {
    const view = toView(row)
    if (view === null || view.state !== 'queued') continue
    if (oldest === null || isOlder(view, oldest)) oldest = view
  }
  return oldest
}

function isOlder(a: JobView, b: JobView): boolean {
  return a.runAtMs === b.runAtMs ? a.id < b.id : a.runAtMs < b.runAtMs
}

/**
 * Of each queue and priority the job that has waited longest, and the first that waits for others. Within a priority
 * BullMQ orders by due time. Answers rows; the caller takes the oldest.
 */
const oldestScript = composeRead(
  'oldest',
  `${SORTED}
local rows = {}
local function add(q, ids)
  for _, id in ipairs(ids) do
    if call('EXISTS', q.base .. id) == 1 then rows[#rows + 1] = rowOf(q, id) end
  end
end
-- Of the jobs in \`prioritized\` whose scores are moved by so much.
local function addPrioritized(q, moved, to)
  for priority = 0, 10 do
    local from, below = priority * 4294967296 - moved, '(' .. string.format('%.0f', (priority + 1) * 4294967296 - moved)
    -- Released jobs come before the rest, in order of arrival.
    add(q, call('ZRANGEBYSCORE', q.prioritized, from, below, 'LIMIT', 0, 2))
  end
  add(q, call('ZRANGEBYSCORE', q.prioritized, 11 * 4294967296 - moved, to, 'LIMIT', 0, 1))
end
for _, name in ipairs(call('SMEMBERS', KEYS[1])) do
  local q = queueOf(name)
  add(q, call('LRANGE', q.wait, -1, -1))
  add(q, call('LRANGE', q.paused, -1, -1))
  add(q, call('ZRANGEBYSCORE', q.delayed, '-inf', (now + 1) * 4096 - 1, 'LIMIT', 0, 1))
  add(q, call('ZRANGEBYSCORE', q['waiting-children'], 0, now, 'LIMIT', 0, 1))
  add(q, call('ZREVRANGEBYSCORE', q['waiting-children'], '(0', -now, 'LIMIT', 0, 1))
  if call('ZCARD', q.prioritized) > 0 then
    addPrioritized(q, 0, '+inf')
    -- Those that are sorted by tenant.
    if call('ZCOUNT', q.prioritized, '-inf', '(0') > 0 then addPrioritized(q, SORTED, '(0') end
  end
end
return rows
`,
)
