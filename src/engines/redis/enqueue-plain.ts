import type { NewJob } from '../../job/job.ts'
import { queueOf } from './keys.ts'
import { compose } from './scripts.ts'

/** The arguments of `enqueueAll` in Lua: the number of jobs, whether one comes after others, and 14 values for each. */
export function enqueueArgs(jobs: readonly NewJob[]): (string | number)[] {
  const args: (string | number)[] = [jobs.length, jobs.some(({ after }) => after !== null) ? '1' : '0']
  for (const job of jobs) {
    const { latest, after } = job
    args.push(
      queueOf(job.type),
      job.id,
      job.options?.name ?? job.type,
      job.payload,
      job.runAtMs ?? '',
      job.delayMs,
      job.priority,
      job.attempts,
      job.key ?? '',
      moreOf(job),
      latest?.key ?? '',
      latest?.seq ?? '',
      after?.ids.join('\n') ?? '',
      after?.ifDead ?? '',
    )
  }
  return args
}

/** What BullMQ has no field for, as JSON; empty for a plain job, which then costs nothing. */
export function moreOf({ payloadVersion, key, latest, tenant, options }: NewJob): string {
  if (payloadVersion === 1 && key === null && latest === null && tenant === null && options === null) return ''
  return JSON.stringify({
    ...(payloadVersion !== 1 && { v: payloadVersion }),
    ...(key !== null && { key }),
    ...(latest !== null && { latest: { key: latest.key } }),
    ...(tenant !== null && { tenant }),
    ...(options !== null && { options }),
  })
}

/** `isStored(q, id)`. */
export const STORED = `
-- Under any type: ids are unique.
local function isStored(q, id)
  if call('EXISTS', q.base .. id) == 1 then return true end
  local found = call('ZRANGEBYLEX', own('index'), '[' .. id .. ':', '(' .. id .. ';', 'LIMIT', 0, 1)[1]
  return found ~= nil and call('EXISTS', prefix .. ':' .. string.sub(found, #id + 2) .. ':' .. id) == 1
end

`

/** BullMQ's functions that `PLAIN` calls. */
export const PLAIN_FUNCTIONS: readonly string[] = [
  'getOrSetMaxEvents',
  'promoteDelayedJobs',
  'storeAndEnqueueJob',
  'storeJob',
]

/** Stores the jobs that ARGV holds and leaves in `answers` a word and an id for each. */
export const PLAIN = `
local count, queues, answers, indexed, seen = tonumber(ARGV[2]), {}, {}, {}, {}

-- Ids grow with time: if none is stored between the first and the last, none of these is.
local function mayBeStored()
  local first, last
  for index = 1, count do
    local id = ARGV[5 + 14 * (index - 1)]
    if first == nil or id < first then first = id end
    if last == nil or id > last then last = id end
  end
  return count > 0 and #call('ZRANGEBYLEX', own('index'), '[' .. first .. ':', '(' .. last .. ';', 'LIMIT', 0, 1) > 0
end
local looks = mayBeStored()

local function openQueue(name, jobs)
  local q = queueOf(name)
  local known = call('HMGET', q.meta, 'opts.maxLenEvents', 'mr')
  -- The first write must be one that Redis refuses when memory is full. An extra marker only causes a needless look.
  call('ZADD', q.marker, 0, '0')
  if not known[2] then
    call('SADD', KEYS[1], name)
    call('HSET', q.meta, 'mr', 1)
  end
  -- Due jobs go before new ones, so a delayed job keeps its turn.
  if isDelayedDue(q.delayed) then
    promoteDelayedJobs(q.delayed, q.marker, q.wait, q.prioritized, q.events, q.base, now, q.pc, false)
  end
  return { q = q, maxEvents = known[1] or getOrSetMaxEvents(q.meta), arrival = call('INCRBY', q.pc, jobs) - jobs, ready = {} }
end

-- Lua's stack limits how many arguments one command takes.
local function addAll(key, members)
  for from = 1, #members, 2000 do call('ZADD', key, unpack(members, from, math.min(from + 1999, #members))) end
end

local function storeReady(queue, job)
  local q, ready = queue.q, queue.ready
  storeJob(q.events, q.base .. job.id, job.id, job.name, job.data, { attempts = job.attempts, priority = job.priority }, nowText)
  queue.arrival = queue.arrival + 1
  ready[#ready + 1] = string.format('%.0f', job.priority * 4294967296 + queue.arrival % 4294967296)
  ready[#ready + 1] = job.id
  call('XADD', q.events, 'MAXLEN', '~', queue.maxEvents, '*', 'event', 'waiting', 'jobId', job.id)
end

local function storeDelayed(queue, job, run)
  local q, key = queue.q, queue.q.base .. job.id
  local opts = { attempts = job.attempts, priority = job.priority, delay = run - now }
  storeAndEnqueueJob(q.events, key, job.id, job.name, job.data, opts, now, nil, nil, nil, queue.maxEvents,
    q.wait, q.paused, q.active, q.meta, q.prioritized, q.pc, q.delayed, q.marker)
end

local function storeOne(queue, job, run, more)
  local key = queue.q.base .. job.id
  if seen[job.id] or (looks and isStored(queue.q, job.id)) then return 'duplicate' end
  seen[job.id] = true
  if run and run > now then storeDelayed(queue, job, run) else storeReady(queue, job) end
  if more ~= '' then call('HSET', key, 'mr', more) end
  if run then call('HSET', key, 'mrRun', string.format('%.0f', run)) end
  indexed[#indexed + 1] = 0
  indexed[#indexed + 1] = job.id .. ':' .. queue.q.name
  return 'enqueued'
end

for index = 1, count do
  local name = ARGV[4 + 14 * (index - 1)]
  queues[name] = (queues[name] or 0) + 1
end
for name, jobs in pairs(queues) do queues[name] = openQueue(name, jobs) end
for index = 1, count do
  local at = 4 + 14 * (index - 1)
  local delay = tonumber(ARGV[at + 5])
  local run = tonumber(ARGV[at + 4]) or (delay > 0 and now + delay) or nil
  local job = {
    id = ARGV[at + 1], name = ARGV[at + 2], data = ARGV[at + 3], priority = tonumber(ARGV[at + 6]), attempts = tonumber(ARGV[at + 7]),
  }
  answers[2 * index - 1] = storeOne(queues[ARGV[at]], job, run, ARGV[at + 9])
  answers[2 * index] = job.id
end
for _, queue in pairs(queues) do addAll(queue.q.prioritized, queue.ready) end
addAll(own('index'), indexed)
`

/**
 * Jobs without links to others, the common case: the steps of BullMQ's addPrioritizedJob, with those of the queue done
 * once per batch. test/bullmq pins the text that this follows. ARGV as for
 * `enqueueScript`; no job has a key, a latest key or a predecessor.
 */
export const enqueuePlainScript = compose(
  'enqueue-plain',
  { functions: PLAIN_FUNCTIONS },
  STORED,
  PLAIN,
  'return answers',
)
