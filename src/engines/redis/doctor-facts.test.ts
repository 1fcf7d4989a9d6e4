import assert from 'node:assert/strict'
import { after, before, describe, type TestContext, test } from 'node:test'
import { freshPrefix, type OwnRedis, startRedis, withRedis } from '../../../test/servers/redis.ts'
import {
  judgeCluster,
  judgeCoverage,
  judgeIndex,
  judgeMemory,
  judgePersistence,
  judgeReplicasToWrite,
  judgeRole,
  judgeWrites,
} from '../../doctor/redis.ts'
import { judgeServerClock, judgeServerVersion } from '../../doctor/server.ts'
import type { Finding } from '../../engine/engine.ts'
import { systemClock } from '../../time/clock.ts'
import { parseInfo, RedisDatabase } from './database.ts'
import { diagnose, versionFacts } from './doctor-facts.ts'
import { DEFAULTS, parseUrl } from './options.ts'

const MIB = 1024 * 1024
const info = (fields: Readonly<Record<string, string | number>>) =>
  parseInfo(
    Object.entries(fields)
      .map(([name, value]) => `${name}:${value}`)
      .join('\r\n'),
  )

const about = (findings: readonly Finding[], subject: string): readonly Finding[] =>
  findings.filter((finding) => finding.subject === subject)

describe('what Redis says of itself', () => {
  test('is judged by version, role and clock', () => {
    assert.equal(judgeServerVersion(versionFacts(info({ redis_version: '6.0.16' }))).severity, 'error')
    assert.equal(judgeServerVersion(versionFacts(info({ redis_version: '6.2.14' }))).severity, 'warning')
    assert.equal(judgeServerVersion(versionFacts(info({ redis_version: '7.4.1' }))).severity, 'ok')
    const valkey = judgeServerVersion(versionFacts(info({ redis_version: '7.2.4', valkey_version: '8.1.0' })))
    assert.deepEqual([valkey.severity, valkey.detail], ['ok', 'valkey 8.1.0 (as Redis 7.2.4)'])
    assert.equal(judgeRole(info({ role: 'slave', master_host: 'h', master_port: 1 })).severity, 'error')
    assert.match(judgeRole(info({ role: 'master', connected_slaves: 2 })).detail, /2 connected/)
    assert.equal(judgeServerClock(10_000, 9_000, 9_500).severity, 'ok')
    assert.match(judgeServerClock(100_000, 9_000, 9_500).detail, /1 min ahead/)
    assert.match(judgeServerClock(1_000, 9_000, 9_500).detail, /8 s behind/)
  })

  test('is judged by what a crash would take', () => {
    const judged = (
      fields: Readonly<Record<string, string>>,
      appendfsync: string | null,
      save: string | null,
    ): string => judgePersistence(info(fields), { appendfsync, save }).severity
    assert.equal(judged({ aof_enabled: '1' }, 'always', ''), 'ok')
    assert.equal(judged({ aof_enabled: '1' }, 'everysec', ''), 'ok')
    assert.equal(judged({ aof_enabled: '1' }, 'no', ''), 'warning')
    // Hosted servers forbid CONFIG, and then nobody knows of snapshots.
    assert.equal(judged({ aof_enabled: '1' }, null, null), 'ok')
    assert.equal(judged({ aof_enabled: '0' }, null, null), 'warning')
    assert.equal(judged({ aof_enabled: '0' }, 'everysec', '3600 1 300 100'), 'warning')
    assert.equal(judged({ aof_enabled: '0' }, 'everysec', ''), 'error')
    assert.deepEqual(judgeWrites(info({ rdb_last_bgsave_status: 'ok', aof_last_write_status: 'ok' })), [])
    assert.equal(judgeWrites(info({ rdb_last_bgsave_status: 'err' }))[0]?.severity, 'error')
  })

  test('is judged by the memory that is left, before it is used up', () => {
    const judged = (used: number, maxmemory: number, machine = 1_000): string =>
      judgeMemory(info({ used_memory: used * MIB, maxmemory: maxmemory * MIB, total_system_memory: machine * MIB }))
        .severity
    assert.equal(judged(79, 100), 'ok')
    assert.equal(judged(80, 100), 'warning')
    assert.equal(judged(100, 100), 'error')
    assert.equal(judged(100, 0), 'ok')
    assert.equal(judged(900, 0), 'warning')
  })

  test('of a cluster is judged by slots without a node and primaries without a replica', () => {
    const primary = (slots: number, replicas: number, isFailed = false) => ({
      address: 'a:1',
      slots,
      replicas,
      isFailed,
    })
    const severities = (...primaries: readonly ReturnType<typeof primary>[]) =>
      judgeCluster(primaries).map(({ severity }) => severity)
    assert.deepEqual(severities(primary(8_192, 1), primary(8_192, 2), primary(0, 0)), ['ok'])
    assert.deepEqual(severities(primary(8_192, 0), primary(8_192, 1)), ['ok', 'warning'])
    assert.deepEqual(severities(primary(8_192, 1), primary(8_192, 0, true)), ['error'])
    assert.deepEqual(severities(primary(8_191, 1), primary(8_192, 1)), ['error'])
    assert.equal(judgeReplicasToWrite('0', 1)[0]?.severity, 'warning')
    for (const [value, replicas] of [
      ['0', 0],
      ['1', 1],
      [null, 1],
    ] as const)
      assert.deepEqual(judgeReplicasToWrite(value, replicas), [])
    assert.equal(judgeCoverage('yes')[0]?.severity, 'warning')
    assert.deepEqual([judgeCoverage('no'), judgeCoverage(null)], [[], []])
  })

  test('is judged by the part of the index that leads nowhere', () => {
    assert.equal(judgeIndex({ seen: 1_000, gone: 99 }).severity, 'ok')
    assert.equal(judgeIndex({ seen: 1_000, gone: 100 }).severity, 'warning')
    assert.equal(judgeIndex({ seen: 100_000, gone: 100 }).severity, 'ok')
  })
})

describe('a look at Redis', { timeout: 300_000 }, () => {
  let server: OwnRedis
  before(async () => {
    server = await startRedis({ aof: 'everysec' })
  })
  after(() => server.end())

  async function opened(t: TestContext): Promise<RedisDatabase> {
    const options = { ...DEFAULTS, prefix: freshPrefix() }
    const database = new RedisDatabase({
      source: { address: parseUrl(server.url).address },
      clock: systemClock,
      options,
    })
    await database.reach()
    t.after(() => database.close())
    return database
  }

  test('finds nothing wrong with an empty one, and changes nothing', async (t) => {
    const database = await opened(t)
    const findings = await diagnose(database, { recoveryMaxMs: 45_000, deep: true })
    // The server of this machine may be an old one, and the machine too busy for a quick answer.
    const ofTheMachine = ['server version', 'latency']
    const wrong = findings.filter(({ severity, subject }) => severity !== 'ok' && !ofTheMachine.includes(subject))
    assert.deepEqual(wrong, [])
    const subjects = new Set(findings.map(({ subject }) => subject))
    for (const subject of ['durability', 'eviction', 'memory', 'latency', 'clock', 'role', 'events', 'stuck jobs']) {
      assert.ok(subjects.has(subject), subject)
    }
    assert.deepEqual(await withRedis(server.url, (redis) => redis.keys(`${database.keys.prefix}*`)), [])
  })

  test('finds jobs that nobody holds, entries of jobs that are gone, long streams, pauses and late schedules', async (t) => {
    const database = await opened(t)
    const { prefix, types, index } = database.keys
    const hourAgo = systemClock.nowMs() - 2 * 3_600_000
    const key = (name: string): string => `${prefix}:greet:${name}`
    await database.call('sadd', types, 'greet', 'idle')
    await database.call('rpush', key('active'), 'held', 'stuck', 'gone')
    for (const id of ['held', 'stuck', 'late']) {
      await database.call('hset', key(id), 'processedOn', hourAgo, 'timestamp', hourAgo)
    }
    await database.call('set', key('held:lock'), 'token')
    // A job of BullMQ's own has its type in the index, and it is there.
    await database.call('zadd', index, 0, 'greet#held:greet')
    await database.call('zadd', key('prioritized'), 1, 'late')
    await database.call('hset', `${prefix}:idle:meta`, 'paused', 1)
    await withRedis(server.url, async (redis) => {
      const pipeline = redis.pipeline()
      for (let entry = 0; entry < 100_001; entry += 1) pipeline.xadd(key('events'), '*', 'event', 'x')
      for (let entry = 0; entry < 200; entry += 1) pipeline.zadd(index, 0, `01ARZ3NDEKTSV4RRFFQ69G5${entry}:greet`)
      await pipeline.exec()
    })
    const nightly = { revision: '1', body: JSON.stringify({ nextAtMs: hourAgo }), saved: hourAgo }
    await database.call('hset', `${prefix}::records:schedule`, 'nightly', JSON.stringify(nightly))
    const findings = await diagnose(database, { recoveryMaxMs: 45_000 })
    const told = (subject: string): readonly string[] =>
      about(findings, subject).map(({ severity, detail }) => `${severity}: ${detail}`)
    assert.match(
      String(told('stuck jobs')),
      /^error: 1 job of type 'greet' in progress without a valid lease.*started (120 min|2 h) ago/,
    )
    assert.match(String(told('consistency')), /^warning: 1 job of type 'greet' listed as active and gone/)
    assert.match(
      String(told('overdue jobs')),
      /^warning: 1 job of type 'greet' waiting, the oldest due for (120 min|2 h)/,
    )
    assert.match(String(told('paused')), /^warning: BullMQ has paused the queue of 'idle'/)
    assert.match(String(told('events')), /^warning: the stream of 'greet' has 100001 entries/)
    assert.match(String(told('index')), /^warning: 200 of 201 index entries/)
    assert.match(String(told('schedules')), /^error: 1 schedule overdue, 'nightly'/)
  })

  test('finds a policy and a limit that were changed afterwards', async (t) => {
    const database = await opened(t)
    t.after(() => withRedis(server.url, (redis) => redis.config('SET', 'maxmemory', '0')))
    t.after(() => withRedis(server.url, (redis) => redis.config('SET', 'maxmemory-policy', 'noeviction')))
    await database.call('config', 'set', 'maxmemory-policy', 'volatile-lru')
    await database.call('config', 'set', 'maxmemory', 1_000)
    const findings = await diagnose(database, { recoveryMaxMs: 45_000 })
    assert.deepEqual(
      [...about(findings, 'eviction'), ...about(findings, 'memory')].map(({ severity }) => severity),
      ['error', 'error'],
    )
    assert.match(about(findings, 'eviction')[0]?.advice ?? '', /CONFIG SET maxmemory-policy noeviction/)
  })

  test('goes on where one thing cannot be looked at, and says so', async (t) => {
    const database = await opened(t)
    await database.call('set', `${database.keys.prefix}::records:schedule`, 'no hash')
    const findings = await diagnose(database, { recoveryMaxMs: 45_000 })
    const [schedules] = about(findings, 'schedules')
    assert.match(`${schedules?.severity} ${schedules?.detail}`, /^error could not be checked: .*WRONGTYPE/)
    assert.equal(about(findings, 'clock')[0]?.severity, 'ok')
  })
})
