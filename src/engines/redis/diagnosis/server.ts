/** The server itself: its version, its role, what it writes to a disk, what it does when it is full, its clock and how fast it answers. */
import type { Finding } from '../../../engine/diagnosis.ts'
import { failure, formatAge, formatBytes, ok, warning } from '../../../engine/findings.ts'
import { judgeLatency, measureLatency } from '../../../engine/latency.ts'
import { systemClock } from '../../../time/clock.ts'
import type { RedisDatabase } from '../database.ts'
import { type Info, isOlder, SET_POLICY, VERSION_MIN } from '../database.ts'

/** The oldest version that its makers still mend in 2026. */
const MAINTAINED = '7.2.0'
/** Two clocks of one network differ by less. */
const CLOCK_TOLERANCE_MS = 5_000
const MEMORY_WARNING = 0.8

/** A setting of the server, or null where CONFIG is forbidden, as hosted servers do. */
async function settingOf(database: RedisDatabase, name: string): Promise<string | null> {
  try {
    const answer = await database.call('config', 'get', name)
    return Array.isArray(answer) && answer.length === 2 ? String(answer[1]) : null
  } catch {
    return null
  }
}

function numberOf(info: Info, name: string): number {
  return Number(info.get(name) ?? 0)
}

export async function lookAtServer(database: RedisDatabase): Promise<readonly Finding[]> {
  const info = await database.info()
  const [appendfsync, save] = [await settingOf(database, 'appendfsync'), await settingOf(database, 'save')]
  return [
    judgeVersion(info),
    judgeRole(info),
    judgePersistence(info, { appendfsync, save }),
    ...judgeWrites(info),
    judgeEviction(info),
    judgeMemory(info),
  ]
}

export function judgeVersion(info: Info): Finding {
  const version = info.get('redis_version') ?? 'of unknown version'
  const forks = ['valkey', 'dragonfly'].map((name) => [name, info.get(`${name}_version`)] as const)
  const fork = forks.find(([, found]) => found !== undefined)
  const named = fork === undefined ? `Redis ${version}` : `${fork[0]} ${fork[1]} (as Redis ${version})`
  if (isOlder(version, VERSION_MIN)) {
    return failure('server version', `${named} is too old`, `Upgrade the server to ${VERSION_MIN} or later.`)
  }
  if (fork !== undefined || !isOlder(version, MAINTAINED)) return ok('server version', named)
  return warning(
    'server version',
    `${named} gets no more corrections from its makers`,
    `Upgrade the server; Millrace and BullMQ run on ${VERSION_MIN} and newer.`,
  )
}

export function judgeRole(info: Info): Finding {
  const role = info.get('role')
  if (role === 'slave') {
    return failure(
      'role',
      `this server is a replica of ${info.get('master_host')}:${info.get('master_port')}: nothing can be written`,
      'Give the address of the primary.',
    )
  }
  const replicas = numberOf(info, 'connected_slaves')
  return ok(
    'role',
    `a primary with ${replicas === 0 ? 'no replica' : `${replicas} connected (they follow a moment later)`}`,
  )
}

interface Persistence {
  readonly appendfsync: string | null
  readonly save: string | null
}

export function judgePersistence(info: Info, { appendfsync, save }: Persistence): Finding {
  const advice = 'redis-cli CONFIG SET appendonly yes (and appendonly yes in redis.conf), unless jobs may be lost.'
  if (info.get('aof_enabled') === '1') {
    if (appendfsync === 'no') {
      return warning(
        'durability',
        'the append-only file is left to the operating system to write: a power cut may undo half a minute',
        'redis-cli CONFIG SET appendfsync everysec (or always).',
      )
    }
    const loss = { always: 'nothing', everysec: 'the last second' }[appendfsync ?? ''] ?? 'about the last second'
    return ok('durability', `append-only file (appendfsync ${appendfsync ?? 'unknown'}): a power cut may undo ${loss}`)
  }
  if (save === '') {
    return failure('durability', 'neither an append-only file nor snapshots: a restart loses every job', advice)
  }
  const how = save === null ? 'no append-only file' : `snapshots only (save ${save})`
  return warning('durability', `${how}: a crash of the server loses all jobs since the last snapshot`, advice)
}

/** With these, Redis soon takes no writes, or has lost some already. */
export function judgeWrites(info: Info): readonly Finding[] {
  const failed = (
    [
      ['rdb_last_bgsave_status', 'snapshot'],
      ['aof_last_write_status', 'append-only file'],
      ['aof_last_bgrewrite_status', 'rewrite of the append-only file'],
    ] as const
  ).filter(([name]) => (info.get(name) ?? 'ok') !== 'ok')
  return failed.map(([, what]) =>
    failure(
      'durability',
      `the last ${what} could not be written`,
      `Look at the server's log, its disk and its memory.`,
    ),
  )
}

export function judgeEviction(info: Info): Finding {
  const policy = info.get('maxmemory_policy')
  if (policy === undefined) return warning('eviction', 'the server does not tell', 'See that it is noeviction.')
  if (policy === 'noeviction') return ok('eviction', 'noeviction: a full server refuses new jobs and forgets none')
  return failure('eviction', `${policy}: a full server throws jobs away`, `redis-cli ${SET_POLICY}`)
}

export function judgeMemory(info: Info): Finding {
  const [used, limit] = [numberOf(info, 'used_memory'), numberOf(info, 'maxmemory')]
  const machine = numberOf(info, 'total_system_memory')
  const advice = 'Raise maxmemory, or let retention keep fewer finished jobs (removeOnComplete, millrace clean).'
  if (limit > 0) {
    const text = `${formatBytes(used)} of ${formatBytes(limit)} (maxmemory) are used`
    if (used >= limit) return failure('memory', `${text}: enqueue is refused`, advice)
    if (used >= limit * MEMORY_WARNING) return warning('memory', `${text}: at the limit enqueue is refused`, advice)
    return ok('memory', text)
  }
  const text = `${formatBytes(used)} are used, and no maxmemory is set`
  if (machine > 0 && used >= machine * MEMORY_WARNING) {
    return warning(
      'memory',
      `${text}: the machine has ${formatBytes(machine)}, and would end the server when they are used up`,
      `redis-cli CONFIG SET maxmemory <bytes>, and let retention keep fewer finished jobs.`,
    )
  }
  return ok('memory', text)
}

/** Leases and due times go by the server's clock alone; dates given by this machine do not. */
export async function lookAtClock(database: RedisDatabase): Promise<readonly Finding[]> {
  const beforeMs = systemClock.nowMs()
  const serverMs = await database.serverNowMs()
  return [judgeClock(serverMs, beforeMs, systemClock.nowMs())]
}

export function judgeClock(serverMs: number, beforeMs: number, afterMs: number): Finding {
  const skewMs = serverMs < beforeMs ? serverMs - beforeMs : Math.max(0, serverMs - afterMs)
  if (Math.abs(skewMs) <= CLOCK_TOLERANCE_MS) return ok('clock', 'this machine and the server agree to the second')
  return warning(
    'clock',
    `the server's clock is ${formatAge(Math.abs(skewMs))} ${skewMs > 0 ? 'ahead of' : 'behind'} this machine's: leases are right, but dates and schedules given here fall due at another time`,
    'Synchronise both with a time server.',
  )
}

export async function lookAtLatency(database: RedisDatabase): Promise<readonly Finding[]> {
  const took = await measureLatency(systemClock, () => database.ping())
  return [
    judgeLatency(took, {
      cost: 'every claim and every result waits for one',
      advice: 'Run the workers nearer to the server; look for slow commands with redis-cli SLOWLOG GET.',
    }),
  ]
}
