/** What only Redis has: persistence, eviction, memory, BullMQ's queues and the index of jobs. */
import type { Finding } from '../engine/engine.ts'
import { failure, formatBytes, ok, plural, warning } from './findings.ts'

/** What `INFO` says, by name. */
export type RedisInfo = ReadonlyMap<string, string>

function numberOf(info: RedisInfo, name: string): number {
  return Number(info.get(name) ?? 0)
}

export function judgeRole(info: RedisInfo): Finding {
  if (info.get('role') === 'slave') {
    return failure(
      'role',
      `this server is a replica of ${info.get('master_host')}:${info.get('master_port')}: nothing can be written`,
      'Give the address of the primary.',
    )
  }
  const replicas = numberOf(info, 'connected_slaves')
  return ok('role', `a primary with ${replicas === 0 ? 'no replica' : `${replicas} connected (they lag a little)`}`)
}

/** Null where CONFIG is forbidden, as on hosted servers. */
export interface PersistenceSettings {
  readonly appendfsync: string | null
  readonly save: string | null
}

export function judgePersistence(info: RedisInfo, { appendfsync, save }: PersistenceSettings): Finding {
  const advice = 'redis-cli CONFIG SET appendonly yes (and appendonly yes in redis.conf), unless jobs may be lost.'
  if (info.get('aof_enabled') === '1') {
    if (appendfsync === 'no') {
      return warning(
        'durability',
        'the operating system decides when the append-only file is written: a power cut may undo half a minute',
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

const WRITES = [
  ['rdb_last_bgsave_status', 'snapshot'],
  ['aof_last_write_status', 'append-only file'],
  ['aof_last_bgrewrite_status', 'rewrite of the append-only file'],
] as const

/** After these, Redis soon refuses writes, or has lost some already. */
export function judgeWrites(info: RedisInfo): readonly Finding[] {
  return WRITES.filter(([name]) => (info.get(name) ?? 'ok') !== 'ok').map(([, what]) =>
    failure('durability', `the last ${what} could not be written`, `Check the server's log, its disk and its memory.`),
  )
}

/** `setPolicy`: the command that sets the right policy. */
export function judgeEviction(info: RedisInfo, setPolicy: string): Finding {
  const policy = info.get('maxmemory_policy')
  if (policy === undefined) return warning('eviction', 'the server does not say', 'Make sure that it is noeviction.')
  if (policy === 'noeviction') return ok('eviction', 'noeviction: a full server refuses new jobs and forgets none')
  return failure('eviction', `${policy}: a full server throws jobs away`, `redis-cli ${setPolicy}`)
}

const MEMORY_WARNING = 0.8

export function judgeMemory(info: RedisInfo): Finding {
  const [used, limit] = [numberOf(info, 'used_memory'), numberOf(info, 'maxmemory')]
  const machine = numberOf(info, 'total_system_memory')
  const advice = 'Raise maxmemory, or keep fewer finished jobs (removeOnComplete, millrace clean).'
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
      `${text}: the machine has ${formatBytes(machine)} and kills the server when they are used up`,
      'redis-cli CONFIG SET maxmemory <bytes>, and keep fewer finished jobs.',
    )
  }
  return ok('memory', text)
}

export function judgePausedQueues(types: readonly string[]): readonly Finding[] {
  return types.map((type) =>
    warning(
      'paused',
      `BullMQ has paused the queue of '${type}': no job of it starts`,
      'Queue.resume() in BullMQ, or in its dashboard.',
    ),
  )
}

/** BullMQ trims its stream at ten thousand entries, or where a queue's options say. */
const EVENTS_MAX = 100_000

export function judgeEvents(
  streams: readonly { readonly type: string; readonly events: number }[],
): readonly Finding[] {
  const long = streams.filter(({ events }) => events > EVENTS_MAX)
  const entries = streams.reduce((sum, { events }) => sum + events, 0)
  if (long.length === 0) {
    const text = `${plural(entries, 'entry', 'entries')} in the streams of ${plural(streams.length, 'type')}`
    return [ok('events', text)]
  }
  return long.map(({ type, events }) =>
    warning(
      'events',
      `the stream of '${type}' has ${events} entries`,
      `Trim it: redis-cli XTRIM <prefix>:${type}:events MAXLEN '~' 10000. Then check which 'streams.events.maxLen' a producer sets.`,
    ),
  )
}

const GONE_SHARE = 0.1
const GONE_MIN = 100

/** `seen`: entries of the index of jobs that were read; `gone`: those whose job is deleted. */
export interface IndexFacts {
  readonly seen: number
  readonly gone: number
}

export function judgeIndex({ seen, gone }: IndexFacts): Finding {
  const text = `${gone} of ${seen} index entries are of jobs that no longer exist`
  if (gone < GONE_MIN || gone < seen * GONE_SHARE) return ok('index', text)
  return warning(
    'index',
    `${text}: they take memory and slow lists down`,
    `The next retention sweep removes them: run 'millrace keep' or 'millrace clean'.`,
  )
}

/** A primary of a Redis Cluster. */
export interface PrimaryFacts {
  readonly address: string
  /** How many slots it has. */
  readonly slots: number
  readonly isFailed: boolean
  /** Those that are not held for dead. */
  readonly replicas: number
}

const SLOTS = 16_384

/** Whether every slot is served, and would be after the loss of any node. */
export function judgeCluster(primaries: readonly PrimaryFacts[]): readonly Finding[] {
  const serving = primaries.filter(({ slots }) => slots > 0)
  const served = serving.reduce((sum, { slots, isFailed }) => sum + (isFailed ? 0 : slots), 0)
  const findings: Finding[] = []
  if (served < SLOTS) {
    findings.push(
      failure(
        'cluster',
        `${SLOTS - served} of ${SLOTS} slots are served by no node: the types on them stand still`,
        'Look at redis-cli CLUSTER NODES: start the nodes that failed, or assign the slots to others.',
      ),
    )
  } else findings.push(ok('cluster', `all slots are served, by ${plural(serving.length, 'primary', 'primaries')}`))
  for (const { address, replicas, isFailed } of serving) {
    if (replicas > 0 || isFailed) continue
    findings.push(
      warning(
        'replicas',
        `${address} has no replica: if it fails, its types stand still until it is back`,
        'Add one: redis-cli --cluster add-node <new> <any> --cluster-slave.',
      ),
    )
  }
  return findings
}

/** `value`: of `cluster-require-full-coverage`; null where CONFIG is forbidden. */
export function judgeCoverage(value: string | null): readonly Finding[] {
  if (value !== 'yes') return []
  return [
    warning(
      'cluster',
      'cluster-require-full-coverage is yes: when one primary fails, every node refuses calls until it has a successor',
      'CONFIG SET cluster-require-full-coverage no on every node: then only the types of that primary wait.',
    ),
  ]
}

/** `value`: of `min-replicas-to-write`; null where CONFIG is forbidden. */
export function judgeReplicasToWrite(value: string | null, replicas: number): readonly Finding[] {
  if (value === null || replicas === 0 || Number(value) > 0) return []
  return [
    warning(
      'replicas',
      'min-replicas-to-write is 0: a primary that is cut off from its replicas goes on taking jobs, which are lost when one of these takes over',
      'CONFIG SET min-replicas-to-write 1, unless it matters more that jobs are taken without any replica.',
    ),
  ]
}
