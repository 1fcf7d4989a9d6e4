/** What the queues tell: jobs that nobody recovers, that nobody runs, and traces of jobs that are gone. */
import type { Finding } from '../../../engine/diagnosis.ts'
import { failure, formatAge, ok, plural, warning } from '../../../engine/findings.ts'
import type { RedisDatabase } from '../database.ts'
import { typeOf } from '../keys.ts'
import { compose } from '../scripts.ts'

/** Entries that one script looks at: Redis does nothing else meanwhile. */
const LOOK_MAX = 2_000
const OVERDUE_MS = 3_600_000
/** BullMQ cuts its stream at ten thousand, or at what a queue was told. */
const EVENTS_MAX = 100_000
const GONE_SHARE = 0.1
const GONE_MIN = 100

/**
 * ARGV: time, queue, entries at most. Answers: time, entries of the stream, active jobs, of these without a lock, the
 * oldest start of those, of these without a hash, waiting jobs, since when the next of them waits, whether it is paused,
 * when a reaper has last looked.
 */
const lookScript = compose(
  'look-at-queue',
  {},
  `
local q = queueOf(ARGV[2])
local active = call('LRANGE', q.active, 0, tonumber(ARGV[3]) - 1)
local unlocked, oldest, gone = 0, nil, 0
for _, id in ipairs(active) do
  if call('EXISTS', q.base .. id) == 0 then
    gone = gone + 1
  elseif call('EXISTS', q.base .. id .. ':lock') == 0 then
    unlocked = unlocked + 1
    local started = tonumber(call('HGET', q.base .. id, 'processedOn') or nil) or now
    if oldest == nil or started < oldest then oldest = started end
  end
end
local first = call('LINDEX', q.wait, -1) or call('ZRANGE', q.prioritized, 0, 0)[1]
local since = first and tonumber(call('HGET', q.base .. first, 'timestamp') or nil)
if first then since = math.max(since or now, tonumber(call('HGET', q.base .. first, 'mrRun') or nil) or 0) end
local function text(number) return number and string.format('%.0f', number) or '' end
local isStream = call('TYPE', q.events).ok == 'stream'
return {
  text(now), isStream and call('XLEN', q.events) or 0, call('LLEN', q.active), unlocked, text(oldest), gone,
  call('LLEN', q.wait) + call('ZCARD', q.prioritized), text(since), call('HEXISTS', q.meta, 'paused'),
  call('GET', own('reaped')) or ''
}
`,
)

interface Queue {
  readonly type: string
  readonly nowMs: number
  readonly events: number
  readonly active: number
  readonly unlocked: number
  readonly oldestMs: number | null
  readonly gone: number
  readonly waiting: number
  readonly sinceMs: number | null
  readonly isPaused: boolean
  /** When a reaper has last looked, at whatever type. */
  readonly reapedMs: number | null
}

async function lookAt(database: RedisDatabase, queue: string): Promise<Queue> {
  const answer = await database.run(lookScript(), [queue, LOOK_MAX])
  const values: readonly unknown[] = Array.isArray(answer) ? answer : []
  const number = (at: number): number => Number(values[at] ?? 0)
  const time = (at: number): number | null => (values[at] === '' ? null : number(at))
  return {
    type: typeOf(queue),
    nowMs: number(0),
    events: number(1),
    active: number(2),
    unlocked: number(3),
    oldestMs: time(4),
    gone: number(5),
    waiting: number(6),
    sinceMs: time(7),
    isPaused: number(8) === 1,
    reapedMs: time(9),
  }
}

export async function lookAtQueues(database: RedisDatabase, recoveryMaxMs: number): Promise<readonly Finding[]> {
  const names = await database.call('smembers', database.keys.types)
  const queues: Queue[] = []
  for (const name of Array.isArray(names) ? names.map(String).sort() : []) queues.push(await lookAt(database, name))
  return [
    ...judgeStuck(queues, recoveryMaxMs),
    ...judgeGone(queues),
    ...judgeOverdue(queues),
    ...judgePaused(queues),
    ...judgeEvents(queues),
  ]
}

function judgeStuck(queues: readonly Queue[], recoveryMaxMs: number): readonly Finding[] {
  const isOver = (sinceMs: number | null, nowMs: number): boolean => sinceMs !== null && nowMs - sinceMs > recoveryMaxMs
  // Redis does not tell when a lock ended. A reaper that looks takes what it finds, so then nobody is stuck.
  const stuck = queues.filter(
    ({ oldestMs, reapedMs, nowMs }) => isOver(oldestMs, nowMs) && (reapedMs === null || isOver(reapedMs, nowMs)),
  )
  if (stuck.length === 0) return [ok('stuck jobs', 'no job is active without a lease for longer than recovery takes')]
  return stuck.map(({ type, unlocked, oldestMs, nowMs }) =>
    failure(
      'stuck jobs',
      `${plural(unlocked, 'job')} of type '${type}' active and without a lease, the oldest started ${formatAge(nowMs - (oldestMs ?? nowMs))} ago`,
      `Start a worker or 'millrace keep', which recover within ${formatAge(recoveryMaxMs)}, or run 'millrace reap' once.`,
    ),
  )
}

function judgeGone(queues: readonly Queue[]): readonly Finding[] {
  return queues
    .filter(({ gone }) => gone > 0)
    .map(({ type, gone }) =>
      warning(
        'consistency',
        `${plural(gone, 'job')} of type '${type}' listed as active and gone: somebody deleted their hashes`,
        `Find out who deletes keys there; 'millrace reap' takes the entries out.`,
      ),
    )
}

function judgeOverdue(queues: readonly Queue[]): readonly Finding[] {
  const overdue = queues.filter(
    ({ sinceMs, nowMs, isPaused }) => !isPaused && sinceMs !== null && nowMs - sinceMs > OVERDUE_MS,
  )
  if (overdue.length === 0)
    return [ok('overdue jobs', `no job that is next waits longer than ${formatAge(OVERDUE_MS)}`)]
  return overdue.map(({ type, waiting, active, sinceMs, nowMs }) =>
    warning(
      'overdue jobs',
      `${plural(waiting, 'job')} of type '${type}' waiting, the next of them for ${formatAge(nowMs - (sinceMs ?? nowMs))}, and ${active === 0 ? 'none' : active} running`,
      active === 0 ? `Start a worker of '${type}'.` : `Give '${type}' more workers or more concurrency.`,
    ),
  )
}

function judgePaused(queues: readonly Queue[]): readonly Finding[] {
  return queues
    .filter(({ isPaused }) => isPaused)
    .map(({ type }) =>
      warning(
        'paused',
        `BullMQ has paused the queue of '${type}': nothing of it is handed out`,
        'Queue.resume() in BullMQ, or in its dashboard.',
      ),
    )
}

function judgeEvents(queues: readonly Queue[]): readonly Finding[] {
  const long = queues.filter(({ events }) => events > EVENTS_MAX)
  const entries = queues.reduce((sum, { events }) => sum + events, 0)
  if (long.length === 0)
    return [
      ok(
        'events',
        `${plural(entries, 'entry').replace('entrys', 'entries')} in the streams of ${plural(queues.length, 'type')}`,
      ),
    ]
  return long.map(({ type, events }) =>
    warning(
      'events',
      `the stream of '${type}' has ${events} entries`,
      `Trim it: redis-cli XTRIM <prefix>:${type}:events MAXLEN '~' 10000; and see what 'streams.events.maxLen' a producer sets.`,
    ),
  )
}

/** ARGV: time, cursor, entries. Answers: cursor, entries looked at, of these without a job. */
const indexScript = compose(
  'look-at-index',
  {},
  `
local found = call('ZSCAN', own('index'), ARGV[2], 'COUNT', ARGV[3])
local seen, gone = 0, 0
for at = 1, #found[2], 2 do
  seen = seen + 1
  local id, name = string.match(found[2][at], '^(.*):([^:]*)$')
  local public = string.gsub(name or '', '/', ':') .. '#'
  if id and string.sub(id, 1, #public) == public then id = string.sub(id, #public + 1) end
  if id == nil or call('EXISTS', prefix .. ':' .. name .. ':' .. id) == 0 then gone = gone + 1 end
end
return { found[1], seen, gone }
`,
)

/** All of the index where the look may take its time, else its beginning. */
export async function lookAtIndex(database: RedisDatabase, isDeep: boolean): Promise<readonly Finding[]> {
  let [cursor, seen, gone] = ['0', 0, 0]
  do {
    const answer = await database.run(indexScript(), [cursor, LOOK_MAX])
    if (!Array.isArray(answer)) break
    cursor = String(answer[0])
    seen += Number(answer[1])
    gone += Number(answer[2])
  } while (cursor !== '0' && (isDeep || seen < LOOK_MAX * 5))
  return [judgeIndex(seen, gone)]
}

export function judgeIndex(seen: number, gone: number): Finding {
  const text = `${gone} of ${seen} entries of the index looked at are of jobs that are gone`
  if (gone < GONE_MIN || gone < seen * GONE_SHARE) return ok('index', text)
  return warning(
    'index',
    `${text}: they take memory and slow lists down`,
    `They go with the next turn of retention: run 'millrace keep' or 'millrace clean'.`,
  )
}
