import type { Lease, Lost, Outcome, Settlement } from '../../engine/outcome.ts'
import type { RedisDatabase } from './database.ts'
import { bullId, queueOf } from './keys.ts'
import { FENCE, lostOf } from './leases.ts'
import { IDENTITY } from './lua/links.ts'
import { compose, GOES_ON_WHEN_FULL } from './scripts.ts'

/** `finish(q, id, s, removes)`: BullMQ's own step from active to completed; `wake(q)` after a batch. */
export const FINISH = `
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

-- A queue that BullMQ's own limit had filled has room now, and nothing else wakes the waiting claims.
local function wake(q)
  if call('HEXISTS', q.meta, 'concurrency') == 1 then call('ZADD', q.marker, 0, '0') end
end
`

/**
 * BullMQ's moveToFinished for a job without parent, children or deduplication, in half as many commands: the steps of a
 * queue run once per batch. test/bullmq pins the text that this follows. Nil where BullMQ's script must be used.
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
  wake(q)
end
`

/**
 * Completes plain jobs: without links and without a keep limit. A job that others come after is left to `settleScript`:
 * its answer is 'linked'. ARGV: time, number of jobs, then for each: queue, id, token, attempt,
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
  -- One command asks whether others come after it, and whether BullMQ knows of children.
  local hasLinks = call('EXISTS', after, key .. ':dependencies', key .. ':unsuccessful') > 0
  if hasLinks and call('EXISTS', after) == 1 then
    answers[index] = 'linked'
  else
    local s = { token = ARGV[at + 2], attempt = tonumber(ARGV[at + 3]), text = ARGV[at + 4], number = tonumber(ARGV[at + 5]) }
    local removes = ARGV[at + 6] == '1'
    local code = not hasLinks and finishPlain(queue, id, s, removes) or finish(q, id, s, removes)
    answers[index] = code < 0 and lossOf(q, id) or ''
  end
end
for _, queue in pairs(queues) do closeQueue(queue.q) end
return answers
`,
)

export interface Completion {
  readonly lease: Lease
  readonly outcome: Extract<Outcome, { kind: 'complete' }>
}

/** The hot path. `linked`: others come after these, which the plain script cannot unblock. */
export async function completePlain(
  database: RedisDatabase,
  done: readonly Completion[],
): Promise<{ readonly lost: readonly Lost[]; readonly linked: readonly Settlement[] }> {
  const args: (string | number)[] = [done.length]
  for (const { lease, outcome } of done) {
    const { job, token, attempt } = lease
    const removes = outcome.keep === 0 ? '1' : '0'
    args.push(queueOf(job.type), bullId(job.type, job.id), token, attempt, outcome.result, outcome.durationMs, removes)
  }
  const answer = await database.run(completeScript(), args)
  const answers: readonly unknown[] = Array.isArray(answer) ? answer : []
  const linked = done.filter((_, index) => answers[index] === 'linked')
  const reasons = answers.map((one) => (one === 'linked' ? '' : one))
  return {
    linked,
    lost: lostOf(
      done.map(({ lease }) => lease),
      reasons,
    ),
  }
}
