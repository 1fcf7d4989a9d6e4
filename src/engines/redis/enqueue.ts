import type { Receipt } from '../../engine/engine.ts'
import { EngineError, UnknownJobError } from '../../errors.ts'
import type { NewJob } from '../../job/job.ts'
import type { RedisDatabase } from './database.ts'
import { enqueueOneArgs, enqueueOneScript } from './enqueue-one.ts'
import { enqueueArgs, enqueuePlainScript, PLAIN_FUNCTIONS, STORED } from './enqueue-plain.ts'
import { CHUNK_SIZE, storeInChunks } from './large-batch.ts'
import { HISTORY } from './lua/history.ts'
import { ENDED, LINKS, LINKS_BULL } from './lua/links.ts'
import { type BullParts, compose } from './scripts.ts'

/** Redis runs nothing else while it stores a batch, and accepts at most a million arguments. */
const BATCH_MAX = 50_000

/** All jobs or none. */
export async function storeJobs(database: RedisDatabase, jobs: readonly NewJob[]): Promise<readonly Receipt[]> {
  if (jobs.length > BATCH_MAX) {
    throw new EngineError(
      'ERR_UNSUPPORTED',
      `${jobs.length} jobs in one batch would stop Redis for too long; split it into batches of ${BATCH_MAX} at most`,
    )
  }
  if (!jobs.every(isPlain)) return receiptsFrom(jobs, await database.runKept(enqueueScript(), enqueueArgs(jobs)))
  const [only, second] = jobs
  if (only !== undefined && second === undefined && isReady(only)) {
    const answer = await database.runKept(enqueueOneScript(), enqueueOneArgs(only))
    if (answer !== null) return [{ id: only.id, status: 'enqueued' }]
  }
  if (jobs.length > CHUNK_SIZE && areDistinct(jobs)) return receiptsFrom(jobs, await storeInChunks(database, jobs))
  return receiptsFrom(jobs, await database.runKept(enqueuePlainScript(), enqueueArgs(jobs)))
}

/** In chunks, the first of two jobs with one id could finish before the second is stored. */
function areDistinct(jobs: readonly NewJob[]): boolean {
  return new Set(jobs.map(({ id }) => id)).size === jobs.length
}

/** Without links to other jobs. */
function isPlain({ key, latest, after }: NewJob): boolean {
  return key === null && latest === null && after === null
}

/** Due at once. */
function isReady({ delayMs, runAtMs }: NewJob): boolean {
  return delayMs === 0 && runAtMs === null
}

const STATUSES: readonly string[] = ['enqueued', 'duplicate', 'replaced', 'stale'] satisfies Receipt['status'][]

function isStatus(text: unknown): text is Receipt['status'] {
  return typeof text === 'string' && STATUSES.includes(text)
}

export function receiptsFrom(jobs: readonly NewJob[], answer: unknown): readonly Receipt[] {
  const answers: readonly unknown[] = Array.isArray(answer) ? answer : []
  if (answers[0] === 'unknown') throw new UnknownJobError(String(answers[1]))
  return jobs.map((job, index) => {
    const status = answers[2 * index]
    if (isStatus(status)) return { id: String(answers[2 * index + 1]), status }
    throw new EngineError(
      'ERR_STORAGE_FAILED',
      `Redis gave no receipt for job ${job.id}; whether it is stored is unknown`,
    )
  })
}

/** BullMQ's parts that `ENQUEUE` calls. */
export const ENQUEUE_BULL: BullParts = { scripts: LINKS_BULL.scripts, functions: PLAIN_FUNCTIONS }

/** Jobs that come after others. */
const PREDECESSORS = `
-- A predecessor that was a duplicate in this batch stands for the job that it duplicates.
local function predecessors(ids, ifDead, meant)
  if ids == '' then return nil end
  local after = { ids = {}, ifDead = ifDead }
  local seen = {}
  for id in string.gmatch(ids, '[^\\n]+') do
    local one = meant[id] or id
    if not seen[one] then after.ids[#after.ids + 1] = one end
    seen[one] = true
  end
  return after
end

-- Whether a job would not be stored because its version is not newer.
local function isStale(name, latest, seq)
  if latest == '' or seq == '' then return false end
  return tonumber(seq) <= (tonumber(call('HGET', queueOf(name)[':latest:' .. latest], 'seq') or nil) or 0)
end

-- The first predecessor that is neither stored nor earlier in the batch. Then nothing may be stored.
local function unknownPredecessor(first, count)
  local before = {}
  for index = 1, count do
    local at = first + 14 * (index - 1)
    local id, key, ids = ARGV[at + 1], ARGV[at + 8], ARGV[at + 12]
    local isDuplicate = before[id] or isStored(queueOf(ARGV[at]), id) or
      (key ~= '' and holderOf(key) ~= nil)
    if ids ~= '' and not isDuplicate then
      for one in string.gmatch(ids, '[^\\n]+') do
        if not before[one] and find(one) == nil then return one end
      end
    end
    if isDuplicate or not isStale(ARGV[at], ARGV[at + 10], ARGV[at + 11]) then before[id] = true end
  end
end

`

const STORE = `
local function openQueue(name)
  local q = queueOf(name)
  call('SADD', KEYS[1], name)
  q.maxEvents = getOrSetMaxEvents(q.meta)
  -- As if it were not paused: a pause would only leave out a marker, and an extra one does no harm.
  promoteDelayedJobs(q.delayed, q.marker, q.wait, q.prioritized, q.events, q.base, now, q.pc, false)
  return q
end

local function storeOne(q, job, waits)
  local opts = { attempts = job.attempts, priority = job.priority }
  local key = q.base .. job.id
  if waits then
    storeJob(q.events, key, job.id, job.name, job.data, opts, now)
    -- The score is negative for a version that only waits for an older one: it counts as due.
    local due = tonumber(job.run) or now
    call('ZADD', q['waiting-children'], job.version and -due or due, job.id)
    call('XADD', q.events, 'MAXLEN', '~', q.maxEvents, '*', 'event', 'waiting-children', 'jobId', job.id)
  else
    if job.delay > 0 then opts.delay = job.delay end
    storeAndEnqueueJob(q.events, key, job.id, job.name, job.data, opts, now, nil, nil, nil, q.maxEvents,
      q.wait, q.paused, q.active, q.meta, q.prioritized, q.pc, q.delayed, q.marker)
  end
  if job.more ~= '' then call('HSET', q.base .. job.id, 'mr', job.more) end
  if job.run ~= '' then call('HSET', q.base .. job.id, 'mrRun', job.run) end
  if job.version then call('HSET', q.base .. job.id, 'mrSeq', job.version) end
  if job.after then call('HSET', q.base .. job.id, 'mrAfter', cjson.encode(job.after)) end
  if job.place and job.delay == 0 and not waits then
    call('ZADD', q.prioritized, 'XX', job.priority * 4294967296 + job.place, job.id)
  end
  call('ZADD', own('index'), 0, job.id .. ':' .. q.name)
end

local function enqueueOne(q, job)
  if isStored(q, job.id) then return 'duplicate', job.id end
  if job.key ~= '' then
    local holder = holderOf(job.key)
    if holder then return 'duplicate', holder end
  end
  if job.run ~= '' then job.delay = math.max(0, tonumber(job.run) - now)
  elseif job.delay > 0 then job.run = string.format('%.0f', now + job.delay) end
  local status, waits = linked(q, job)
  if status == 'stale' then return status, job.id end
  storeOne(q, job, waits)
  if job.key ~= '' then call('HSET', own('keys'), job.key, q.name .. ':' .. job.id) end
  return status, job.id
end

-- Reads the jobs from the arguments, stores them in turn and answers a word and an id for each.
local function enqueueAll(first, count)
  local queues, answers, meant, at = {}, {}, {}, first
  for index = 1, count do
    local name = ARGV[at]
    local q = queues[name]
    if q == nil then
      q = openQueue(name)
      queues[name] = q
    end
    local status, id = enqueueOne(q, {
      id = ARGV[at + 1], name = ARGV[at + 2], data = ARGV[at + 3], run = ARGV[at + 4], delay = tonumber(ARGV[at + 5]),
      priority = tonumber(ARGV[at + 6]), attempts = tonumber(ARGV[at + 7]), key = ARGV[at + 8], more = ARGV[at + 9],
      latest = ARGV[at + 10], seq = ARGV[at + 11], after = predecessors(ARGV[at + 12], ARGV[at + 13], meant),
    })
    meant[ARGV[at + 1]] = id
    answers[2 * index - 1] = status
    answers[2 * index] = id
    at = at + 14
  end
  return answers
end
`

/**
 * `enqueueAll(first, count)` stores the jobs in the arguments, each unless its id or its key exists already. Due jobs go
 * before new ones, so a delayed job keeps its turn.
 */
export const ENQUEUE: string = [STORED, PREDECESSORS, STORE].join('')

/** ARGV: time, number of jobs, 1 if one of them comes after others, and 14 arguments for each. */
const enqueueScript = compose(
  'enqueue',
  ENQUEUE_BULL,
  HISTORY,
  LINKS,
  ENDED,
  ENQUEUE,
  `
local count = tonumber(ARGV[2])
if ARGV[3] == '1' then
  local unknown = unknownPredecessor(4, count)
  if unknown then return { 'unknown', unknown } end
end
return enqueueAll(4, count)
`,
)
