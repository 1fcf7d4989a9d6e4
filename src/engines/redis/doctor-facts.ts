/** What the doctor is told about a Redis server and its queues. It only reads. */
import { runChecks, warning } from '../../doctor/findings.ts'
import { judgeConsistency, judgeOverdue, judgeStuck, OVERDUE_MS } from '../../doctor/jobs.ts'
import {
  type IndexFacts,
  judgeEvents,
  judgeEviction,
  judgeIndex,
  judgeMemory,
  judgePausedQueues,
  judgePersistence,
  judgeRole,
  judgeWrites,
} from '../../doctor/redis.ts'
import { judgeLatency, judgeServerClock, judgeServerVersion, measureLatency } from '../../doctor/server.ts'
import { judgeSchedules } from '../../doctor/upkeep.ts'
import type { DiagnoseOptions, Finding } from '../../engine/engine.ts'
import { messageOf } from '../../errors.ts'
import { systemClock } from '../../time/clock.ts'
import { type Info, isOlder, type RedisDatabase, SET_POLICY, VERSION_MIN } from './database.ts'
import { isDenied } from './faults.ts'
import { typeOf } from './keys.ts'
import { listRecords } from './records.ts'
import { listOf } from './rows.ts'
import { compose } from './scripts.ts'

export interface Examination extends DiagnoseOptions {
  readonly recoveryMaxMs: number
}

export async function diagnose(database: RedisDatabase, examination: Examination): Promise<readonly Finding[]> {
  return runChecks([
    ['server', () => checkServer(database)],
    ['rights', () => checkRights(database)],
    ['clock', () => checkClock(database)],
    [
      'latency',
      async () =>
        judgeLatency(
          await measureLatency(systemClock, () => database.ping()),
          ' Look for slow commands with redis-cli SLOWLOG GET.',
        ),
    ],
    ['queues', async () => judgeQueues(await readQueues(database), examination.recoveryMaxMs)],
    ['index', async () => judgeIndex(await readIndex(database, examination.deep === true))],
    ['schedules', () => checkSchedules(database)],
  ])
}

/** A setting of the server, or null where CONFIG is forbidden, as on hosted servers. */
export async function settingOf(database: RedisDatabase, name: string): Promise<string | null> {
  try {
    const answer = await database.call('config', 'get', name)
    return Array.isArray(answer) && answer.length === 2 ? String(answer[1]) : null
  } catch {
    return null
  }
}

export async function checkServer(database: RedisDatabase): Promise<readonly Finding[]> {
  const info = await database.info()
  const settings = { appendfsync: await settingOf(database, 'appendfsync'), save: await settingOf(database, 'save') }
  return [
    judgeServerVersion(versionFacts(info)),
    judgeRole(info),
    judgePersistence(info, settings),
    ...judgeWrites(info),
    judgeEviction(info, SET_POLICY),
    judgeMemory(info),
  ]
}

/** Workers go without these, and nobody would notice but by the time that things take. The key and channel are of nobody. */
export async function checkRights(database: RedisDatabase): Promise<readonly Finding[]> {
  const nothing = `${database.keys.prefix}::none`
  const wanted = [
    { without: 'workers are not woken, and look for jobs again and again', call: ['bzpopmin', nothing, 0.01] },
    { without: 'handlers of cancelled jobs hear of it late', call: ['publish', nothing, ''] },
  ] as const
  const findings: Finding[] = []
  for (const { without, call } of wanted) {
    const [command, ...args] = call
    try {
      await database.call(command, ...args)
    } catch (error) {
      if (!isDenied(error)) throw error
      findings.push(
        warning('rights', `${without}: ${messageOf(error)}`, 'Grant the rights of docs/operating-redis.md.'),
      )
    }
  }
  return findings
}

/** The oldest version that still gets fixes in 2026. */
const MAINTAINED = '7.2.0'

export function versionFacts(info: Info): Parameters<typeof judgeServerVersion>[0] {
  const version = info.get('redis_version') ?? 'of unknown version'
  const forks = ['valkey', 'dragonfly'].map((name) => [name, info.get(`${name}_version`)] as const)
  const fork = forks.find(([, found]) => found !== undefined)
  return {
    name: fork === undefined ? `Redis ${version}` : `${fork[0]} ${fork[1]} (as Redis ${version})`,
    isTooOld: isOlder(version, VERSION_MIN),
    isMaintained: fork !== undefined || !isOlder(version, MAINTAINED),
    oldest: VERSION_MIN,
  }
}

export async function checkClock(database: RedisDatabase): Promise<Finding> {
  const beforeMs = systemClock.nowMs()
  const serverMs = await database.serverNowMs()
  return judgeServerClock(serverMs, beforeMs, systemClock.nowMs())
}

/** Entries that one script reads: Redis does nothing else meanwhile. */
const ENTRIES_MAX = 2_000

/**
 * ARGV: time, queue, entries at most. Answers: time, entries of the stream, active jobs, those without a lock, the
 * oldest start of those, those without a hash, waiting jobs, since when the next of them waits, whether it is paused,
 * when a reaper last looked.
 */
const queueScript = compose(
  'check-queue',
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

export interface QueueFacts {
  readonly type: string
  readonly nowMs: number
  readonly events: number
  readonly active: number
  readonly unlocked: number
  readonly oldestStartMs: number | null
  readonly gone: number
  readonly waiting: number
  readonly waitingSinceMs: number | null
  readonly isPaused: boolean
  /** When a reaper last looked, at whatever type. */
  readonly reapedMs: number | null
}

async function readQueue(database: RedisDatabase, queue: string): Promise<QueueFacts> {
  const values = listOf(await database.run(queueScript(), [queue, ENTRIES_MAX]))
  const number = (at: number): number => Number(values[at] ?? 0)
  const time = (at: number): number | null => (values[at] === '' ? null : number(at))
  return {
    type: typeOf(queue),
    nowMs: number(0),
    events: number(1),
    active: number(2),
    unlocked: number(3),
    oldestStartMs: time(4),
    gone: number(5),
    waiting: number(6),
    waitingSinceMs: time(7),
    isPaused: number(8) === 1,
    reapedMs: time(9),
  }
}

export async function readQueues(database: RedisDatabase): Promise<readonly QueueFacts[]> {
  const names = listOf(await database.call('smembers', database.keys.types))
  const queues: QueueFacts[] = []
  for (const name of names.map(String).sort()) queues.push(await readQueue(database, name))
  return queues
}

export function judgeQueues(queues: readonly QueueFacts[], recoveryMaxMs: number): readonly Finding[] {
  return [
    ...judgeStuck(
      queues.flatMap((queue) => stuckIn(queue, recoveryMaxMs)),
      recoveryMaxMs,
    ),
    ...judgeConsistency(queues.map(goneFrom)),
    ...judgeOverdue(queues.flatMap(overdueIn)),
    ...judgePausedQueues(queues.flatMap(({ type, isPaused }) => (isPaused ? [type] : []))),
    ...judgeEvents(queues),
  ]
}

/** Redis does not say when a lock ended. A reaper that looks takes what it finds, so then no job is stuck. */
function stuckIn({ type, unlocked, oldestStartMs, reapedMs, nowMs }: QueueFacts, recoveryMaxMs: number) {
  const isReaped = reapedMs !== null && nowMs - reapedMs <= recoveryMaxMs
  if (oldestStartMs === null || nowMs - oldestStartMs <= recoveryMaxMs || isReaped) return []
  return [{ type, jobs: unlocked, oldestMs: nowMs - oldestStartMs, since: 'started' as const }]
}

function goneFrom({ type, gone }: QueueFacts) {
  return {
    jobs: gone,
    type,
    what: 'listed as active and gone: another program deleted their hashes',
    advice: `Find out which program deletes keys there. 'millrace reap' removes the entries.`,
  }
}

function overdueIn({ type, waiting, active, waitingSinceMs, isPaused, nowMs }: QueueFacts) {
  if (isPaused || waitingSinceMs === null || nowMs - waitingSinceMs <= OVERDUE_MS) return []
  return [{ type, jobs: waiting, counted: 'waiting' as const, oldestMs: nowMs - waitingSinceMs, running: active }]
}

/** ARGV: time, cursor, entries. Answers: cursor, entries read, those without a job. */
const indexScript = compose(
  'check-index',
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

/** Reads the whole index in a deep diagnosis, else its beginning. */
export async function readIndex(database: RedisDatabase, isDeep: boolean): Promise<IndexFacts> {
  let [cursor, seen, gone] = ['0', 0, 0]
  do {
    const answer = await database.run(indexScript(), [cursor, ENTRIES_MAX])
    if (!Array.isArray(answer)) break
    cursor = String(answer[0])
    seen += Number(answer[1])
    gone += Number(answer[2])
  } while (cursor !== '0' && (isDeep || seen < ENTRIES_MAX * 5))
  return { seen, gone }
}

export async function checkSchedules(database: RedisDatabase): Promise<Finding> {
  const { records, nowMs } = await listRecords(database, 'schedule')
  return judgeSchedules(records, nowMs)
}
