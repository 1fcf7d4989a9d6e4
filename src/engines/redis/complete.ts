import type { Lease, Lost, Outcome, Settlement } from '../../engine/outcome.ts'
import type { RedisDatabase } from './database.ts'
import { queueOf } from './keys.ts'
import { FENCE, lostOf } from './leases.ts'
import { IDENTITY } from './lua/links.ts'
import { WAKE } from './lua/slots.ts'
import { compose, GOES_ON_WHEN_FULL } from './scripts.ts'

/** `finish(q, id, s, removes, isLater)`: BullMQ's own step from active to completed; `wake(q)` after a batch. */
export const FINISH = `
local function finishKeys(q, id, set)
  return { q.wait, q.active, q.prioritized, q.events, q.stalled, q.limiter, q.delayed, q.paused, q.meta, q.pc, set,
    q.base .. id, q['metrics:' .. string.match(set, '[^:]*$')], q.marker }
end

local ALL, NONE = { count = -1 }, { count = 0 }

local function finish(q, id, s, removes, isLater)
  local opts = cmsgpack.pack({ token = s.token, keepJobs = removes and NONE or ALL, maxMetricsSize = '', attempts = 0 })
  local code = bull_moveToFinished(finishKeys(q, id, q.completed),
    { id, now, 'returnvalue', s.text, 'completed', '0', q.base, opts, cmsgpack.pack({ 'mrTook', s.number }) })
  if code < 0 then return code end
  if removes then
    call('ZREM', own('index'), publicId(q, id) .. ':' .. q.name)
  elseif isLater then
    call('HDEL', q.base .. id, 'mrError', 'failedReason', 'stacktrace')
  end
  return 0
end
${WAKE}`

/**
 * BullMQ's moveToFinished for jobs without parent, children or deduplication, in a third of the commands: what belongs to
 * the queue, and what one command can do for many jobs, is done once per batch. test/bullmq pins the text that this
 * follows. Everything is read before anything is written.
 */
const FINISH_PLAIN = `
local queues, kinds, count, kindCount = {}, {}, tonumber(ARGV[2]), tonumber(ARGV[3])

local function opened(name)
  local queue = queues[name]
  if queue == nil then
    local q = queueOf(name)
    trimEvents(q.meta, q.events)
    queue = { q = q, hasStalled = call('SCARD', q.stalled) > 0, plain = {}, completed = {} }
    queues[name] = queue
  end
  return queue
end

for index = 1, kindCount do
  local at = 1 + 3 * index
  -- As publicId makes it: BullMQ's id after the type, which is as long as the queue's name.
  kinds[tostring(index)] = { queue = opened(ARGV[at]), hash = #ARGV[at] + 1, isLater = ARGV[at + 1] == '1', removes = ARGV[at + 2] == '1' }
end

-- The jobs of some arguments. \`linked\`: keys that show that others come after a job, or that BullMQ knows of children.
local function readJobs(from, to)
  local jobs, locks, linked = {}, {}, {}
  for index = from, to do
    local at = 5 * index + 3 * kindCount - 1
    local kind, public = kinds[ARGV[at]], ARGV[at + 1]
    local id = string.sub(public, kind.hash, kind.hash) == '#' and string.sub(public, kind.hash + 1) or public
    local key, nth = kind.queue.q.base .. id, index - from + 1
    jobs[nth] = {
      kind = kind, id = id, key = key, token = ARGV[at + 2], text = ARGV[at + 3], number = ARGV[at + 4], public = public,
      facts = call('HMGET', key, 'name', 'parentKey', 'deid', 'atm'),
    }
    locks[nth] = key .. ':lock'
    linked[3 * nth - 2], linked[3 * nth - 1], linked[3 * nth] = own('after:' .. public), key .. ':dependencies', key .. ':unsuccessful'
  end
  return jobs, call('MGET', unpack(locks)), call('EXISTS', unpack(linked)) > 0
end

-- What becomes of a job: 'plain', 'linked', 'lost', or 'bull' where BullMQ's script must be used.
local function courseOf(job, holder, mayBeLinked)
  local facts = job.facts
  if mayBeLinked and call('EXISTS', own('after:' .. job.public)) == 1 then return 'linked' end
  if holder ~= job.token then return 'lost' end
  if not facts[1] or facts[2] or facts[3] then return 'bull' end
  local hasChildren = mayBeLinked and call('EXISTS', job.key .. ':dependencies', job.key .. ':unsuccessful') > 0
  return hasChildren and 'bull' or 'plain'
end

-- Jobs mostly end in the order of their claims. Then they are the last of the active ones, and one command takes them out.
local function popActive(queue)
  local active, count, last = queue.q.active, #queue.plain, {}
  queue.isPopped = false
  if count == 0 then return end
  for _, id in ipairs(call('LRANGE', active, -count, -1)) do last[id] = true end
  for _, id in ipairs(queue.plain) do
    if not last[id] then return end
    last[id] = nil
  end
  -- RPOP would answer with all these ids once more.
  call('LTRIM', active, '0', tostring(-count - 1))
  queue.isPopped = true
end

-- False where the job is not among the active ones.
local function finishPlain(job)
  local queue, key, id, facts = job.kind.queue, job.key, job.id, job.facts
  local q = queue.q
  if not queue.isPopped and call('LREM', q.active, -1, id) < 1 then return false end
  if queue.hasStalled then call('SREM', q.stalled, id) end
  if job.kind.removes then
    removeJobKeys(key)
    call('ZREM', own('index'), job.public .. ':' .. q.name)
  else
    local completed = queue.completed
    completed[#completed + 1] = nowText
    completed[#completed + 1] = id
    call('HSET', key, 'atm', facts[4] and (tonumber(facts[4]) or 0) + 1 or '1', 'returnvalue', job.text, 'finishedOn', nowText, 'mrTook', job.number)
    if job.kind.isLater then call('HDEL', key, 'mrError', 'failedReason', 'stacktrace') end
  end
  call('XADD', q.events, '*', 'event', 'completed', 'jobId', id, 'returnvalue', job.text, 'prev', 'active')
  return true
end

local function closeQueue(q)
  if call('EXISTS', q.wait, q.active, q.prioritized) == 0 then call('XADD', q.events, '*', 'event', 'drained') end
  wake(q)
end
`

/**
 * Completes plain jobs: without links and without a keep limit. A job that others come after is left to `settleScript`:
 * its answer is 'linked'. ARGV: time, number of jobs, number of kinds of jobs, for each kind: queue, 1 if it was started before,
 * 1 if it is not kept; then for each job: the number of its kind, Millrace's id, token, result, duration.
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
local answers = {}

local function completeOne(job)
  local q, id, course = job.kind.queue.q, job.id, job.course
  if course == 'linked' then return course end
  if course == 'lost' then return lossOf(q, id) end
  if course == 'plain' and finishPlain(job) then return '', job.key .. ':lock' end
  return finish(q, id, job, job.kind.removes, job.kind.isLater) < 0 and lossOf(q, id) or ''
end

-- Lua's stack limits how many arguments one command takes.
for from = 1, count, 500 do
  local jobs, holders, mayBeLinked = readJobs(from, math.min(from + 499, count))
  local locks = {}
  for index, job in ipairs(jobs) do
    local plain = job.kind.queue.plain
    job.course = courseOf(job, holders[index], mayBeLinked)
    if job.course == 'plain' then plain[#plain + 1] = job.id end
  end
  for _, queue in pairs(queues) do popActive(queue) end
  for _, job in ipairs(jobs) do answers[#answers + 1], locks[#locks + 1] = completeOne(job) end
  if #locks > 0 then call('DEL', unpack(locks)) end
  for _, queue in pairs(queues) do
    if #queue.completed > 0 then call('ZADD', queue.q.completed, unpack(queue.completed)) end
    queue.plain, queue.completed = {}, {}
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
  const kinds = new Map<string, number>()
  const [header, args]: [(string | number)[], (string | number)[]] = [[], []]
  for (const { lease, outcome } of done) {
    const { job, token, attempt } = lease
    const kind = [queueOf(job.type), attempt > 1 ? '1' : '0', outcome.keep === 0 ? '1' : '0']
    const name = kind.join('\n')
    const number = kinds.get(name) ?? kinds.size + 1
    if (number > kinds.size) {
      kinds.set(name, number)
      header.push(...kind)
    }
    args.push(number, job.id, token, outcome.result, outcome.durationMs)
  }
  const answer = await database.run(completeScript(), [done.length, kinds.size, ...header, ...args])
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
