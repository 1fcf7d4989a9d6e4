import type { Lease, Lost, Outcome, Settlement } from '../../engine/outcome.ts'
import { storableRecord } from '../../job/error-record.ts'
import type { ErrorRecord, JobView } from '../../job/job.ts'
import type { Keep } from '../../job/keep.ts'
import { tagsOf } from '../../job/tags.ts'
import { type Completion, completePlain, FINISH } from './complete.ts'
import type { RedisDatabase } from './database.ts'
import { bullId, queueOf } from './keys.ts'
import { FENCE, lostOf } from './leases.ts'
import { HISTORY } from './lua/history.ts'
import { ENDED, LINKS } from './lua/links.ts'
import { REMOVAL, REMOVAL_BULL } from './lua/removal.ts'
import { compose, GOES_ON_WHEN_FULL } from './scripts.ts'

/** Each is refused on its own if its token no longer holds. Those of one kind are one script. */
export async function settleLeases(
  database: RedisDatabase,
  worker: string,
  settlements: readonly Settlement[],
): Promise<readonly Lost[]> {
  const plain: Completion[] = []
  const others: Settlement[] = []
  for (const { lease, outcome } of settlements) {
    if (outcome.kind === 'complete' && !hasLinks(lease) && !outcome.keep) plain.push({ lease, outcome })
    else others.push({ lease, outcome })
  }
  const [completed, settled] = await Promise.all([
    plain.length === 0 ? { lost: [], linked: [] } : completePlain(database, plain),
    others.length === 0 ? [] : settleAny(database, worker, others),
  ])
  const late = completed.linked.length === 0 ? [] : await settleAny(database, worker, completed.linked)
  return [...completed.lost, ...settled, ...late]
}

function hasLinks({ job }: Lease): boolean {
  return job.key !== null || job.latestKey !== null || job.after !== null
}

async function settleAny(
  database: RedisDatabase,
  worker: string,
  settlements: readonly Settlement[],
): Promise<readonly Lost[]> {
  const args: (string | number)[] = [worker, settlements.length]
  for (const { lease, outcome } of settlements) {
    const { job, token, attempt } = lease
    args.push(queueOf(job.type), bullId(job.type, job.id), token, attempt, ...outcomeArgs(outcome, hasLinks(lease)))
  }
  return lostOf(
    settlements.map(({ lease }) => lease),
    await database.run(settleScript(), args),
  )
}

/** Kind, text, number, keep limit, whether that is the job's own, whether the job has links, stack. */
function outcomeArgs(outcome: Outcome, isLinked: boolean): readonly (string | number)[] {
  const linked = isLinked ? '1' : '0'
  switch (outcome.kind) {
    case 'complete':
      return [outcome.kind, outcome.result, outcome.durationMs, ...keepArgs(outcome), linked, '']
    case 'retry':
      return [outcome.kind, textOf(outcome.error), outcome.delayMs, ...keepArgs({}), linked, stackOf(outcome)]
    case 'dead':
      return [outcome.kind, textOf(outcome.error), 0, ...keepArgs(outcome), linked, stackOf(outcome)]
    case 'release':
      return [outcome.kind, outcome.reason, outcome.delayMs, ...keepArgs({}), linked, '']
    default:
      return outcome satisfies never
  }
}

function keepArgs({ keep, keepIsOwn }: Keep): readonly (string | number)[] {
  return [keep ?? '', keepIsOwn === true ? '1' : '0']
}

function textOf(error: ErrorRecord): string {
  return JSON.stringify(storableRecord(error))
}

function stackOf({ error }: Extract<Outcome, { kind: 'retry' | 'dead' }>): string {
  return error.stack ?? `${error.name}: ${error.message}`
}

/** The four outcomes. Each answers BullMQ's code: below 0 the token did not hold, and nothing changed. */
const OUTCOMES = `
local function complete(q, id, s)
  local more = s.isLinked and moreOf(q, id) or {}
  -- A job that comes after it may still read its result.
  local removes = s.keep == 0 and not isNeeded(q, id)
  -- Later its hash is gone, and with it the list of its predecessors.
  if removes and s.isLinked and holds(q, id, s.token) then unlink(q, id) end
  local code = finish(q, id, s, removes, s.attempt > 1)
  if code < 0 then return code end
  if removes and more.latest then forgetVersion(q, more.latest.key) end
  if s.keep == 0 and not removes then call('HSET', q.base .. id, 'mrGoes', 1) end
  over(q, id, more, not removes)
  if s.keep and s.keep > 0 then applyKeepLimit(q, 'completed', s.keep, s.keepIsOwn) end
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

-- Writes this start to the history; the error goes into the hash.
local function failed(q, id, s, last)
  local error = cjson.decode(s.text)
  if not isReaped(s.token) then addStartEvent(q, id, s.attempt) end
  addEvent(q, id, 'failed', s.attempt, s.worker, { error = error })
  if last == 'retried' then addEvent(q, id, last, s.attempt, nil, { delayMs = s.number })
  elseif last then addEvent(q, id, last, s.attempt) end
  return { 'mrError', s.text, 'mrAt', now, 'failedReason', error.message, 'stacktrace', stacksWith(q, id, s.stack) }
end

local function dead(q, id, s)
  local fields = failed(q, id, s, 'dead')
  local opts = cmsgpack.pack({ token = s.token, keepJobs = ALL, maxMetricsSize = '', attempts = 0 })
  local code = bull_moveToFinished(finishKeys(q, id, q.failed),
    { id, now, 'failedReason', fields[6], 'failed', '0', q.base, opts, cmsgpack.pack(fields) })
  over(q, id, s.isLinked and moreOf(q, id) or {}, false)
  if s.keep == 0 then purgeBeyondKeepLimit(q, id) elseif s.keep then applyKeepLimit(q, 'failed', s.keep, s.keepIsOwn) end
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
  if not isReaped(s.token) then addStartEvent(q, id, s.attempt) end
  addEvent(q, id, 'released', s.attempt - 1, s.worker, { reason = s.text, delayMs = s.number })
  if s.number > 0 then return delayed(q, id, s, { 'mrAt', now }, '1') end
  call('HSET', q.base .. id, 'mrAt', now)
  local code = bull_moveJobFromActiveToWait(
    { q.active, q.wait, q.stalled, q.paused, q.meta, q.limiter, q.prioritized, q.marker, q.events },
    { id, s.token, q.base .. id })
  -- BullMQ adds no marker for a prioritized job that it puts back.
  call('ZADD', q.marker, 0, '0')
  return code
end

-- Every outcome but a completion. A version with a newer one waiting behind it is superseded instead.
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
 * reason), number (duration or delay), keep limit, 1 if that is the
 * job's own, 1 if the job has links, stack. Answers for each '' or why it was lost.
 */
const settleScript = compose(
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
for _, q in pairs(queues) do wake(q) end
return answers
`,
)

/** The final view of a job that is removed as it finishes; null for an outcome after which it stays. */
export function finalView({ job, attempt }: Lease, outcome: Outcome, nowMs: number): JobView | null {
  if ((outcome.kind !== 'complete' && outcome.kind !== 'dead') || outcome.keep !== 0) return null
  const isComplete = outcome.kind === 'complete'
  return {
    ...job,
    state: isComplete ? 'completed' : 'dead_letter',
    attempt,
    tags: tagsOf(job.options),
    replays: 0,
    progress: null,
    result: isComplete ? JSON.parse(outcome.result) : null,
    error: isComplete ? null : outcome.error,
    leaseOwner: null,
    leaseUntilMs: null,
    updatedAtMs: nowMs,
    startedAtMs: null,
    completedAtMs: nowMs,
    durationMs: isComplete ? outcome.durationMs : null,
  }
}
