/** What the suite cannot do: move slots, lose nodes, and look at the keys. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Queue } from 'bullmq'
import { Cluster, Redis } from 'ioredis'
import { newJob } from '../../../../test/fixtures/new-job.ts'
import { freshPrefix, keysOf, type OwnRedis, withRedis } from '../../../../test/servers/redis.ts'
import { type OwnCluster, startRedisCluster } from '../../../../test/servers/redis-cluster.ts'
import { openEngine } from '../../../engine/open.ts'
import { EngineError } from '../../../errors.ts'
import { defineJob, open } from '../../../index.ts'
import { systemClock } from '../../../time/clock.ts'
import { prefixOfType } from '../keys.ts'
import { slotOf } from './slots.ts'

const settings = { clock: systemClock, migrate: false }
const coded = (code: string, text: RegExp) => (error: unknown) =>
  error instanceof EngineError && error.code === code && text.test(error.message)

describe('on a Redis Cluster', { timeout: 300_000 }, () => {
  let cluster: OwnCluster
  before(async () => {
    cluster = await startRedisCluster()
  })
  after(() => cluster.end())

  const nodeOf = (prefix: string, type: string): OwnRedis => {
    const index = Math.floor((slotOf(prefixOfType(prefix, type)) * 3) / 16_384)
    const node = cluster.primaries[index]
    assert.ok(node)
    return node
  }

  test('slots are counted as Redis counts them', async () => {
    const keys = ['bull:{mail}:mail:wait', 'plain', '{}x', 'a{}{b}', 'a{b}{c}', 'bull:{:}::types', '{ä}']
    const [node] = cluster.primaries
    const told = await withRedis(node?.url ?? '', (redis) =>
      Promise.all(keys.map((key) => redis.cluster('KEYSLOT', key))),
    )
    assert.deepEqual(keys.map(slotOf), told)
  })

  test('all keys of a type are on one slot, and types are spread over the nodes', async (t) => {
    const prefix = freshPrefix()
    const engine = await openEngine(cluster.url(prefix), settings)
    t.after(() => engine.close())
    const types = ['mail', 'report', 'invoice', 'resize', 'sync', 'notify']
    await engine.enqueue(types.map((type) => newJob({ type })))
    const found = await Promise.all(cluster.primaries.map(({ url }) => keysOf(url, prefix)))
    for (const type of types) {
      const own = found.map((keys) => keys.filter((key) => key.startsWith(`${prefix}:{${type}}:`)))
      assert.equal(own.filter((keys) => keys.length > 0).length, 1, type)
      assert.ok(own.flat().includes(`${prefix}:{${type}}:${type}:prioritized`))
    }
    assert.ok(found.filter((keys) => keys.some((key) => !key.includes('{:}'))).length > 1)
    assert.deepEqual(Object.keys(await engine.counts()).sort(), [...types].sort())
  })

  test('a plain address is told the form of a cluster, and a single server the other way round', async (t) => {
    const [node] = cluster.primaries
    await assert.rejects(openEngine(node?.url ?? '', settings), coded('ERR_STORAGE_OPEN', /redis\+cluster:\/\//))
    await assert.rejects(
      openEngine('redis+cluster://127.0.0.1:1', settings),
      coded('ERR_STORAGE_OPEN', /no server answers/),
    )
    const handle = new Cluster([{ host: '127.0.0.1', port: node?.port ?? 0 }], { lazyConnect: true })
    t.after(() => handle.disconnect())
    const engine = await openEngine(handle, settings)
    t.after(() => engine.close())
    await engine.ping()
    assert.equal(engine.capabilities.scope, 'type')
    assert.equal(handle.status, 'wait', 'the client of the user is not used')
  })

  test('a BullMQ producer with the prefix of the type adds jobs that our workers run', async (t) => {
    const prefix = freshPrefix()
    const [node] = cluster.primaries
    const connection = new Cluster([{ host: '127.0.0.1', port: node?.port ?? 0 }])
    t.after(() => connection.disconnect())
    const queue = new Queue('mail', { connection, prefix: `${prefix}:{mail}` })
    t.after(() => queue.close())
    const mill = await open(cluster.url(prefix))
    t.after(() => mill.close())
    const ran = Promise.withResolvers<unknown>()
    await mill.work([defineJob({ type: 'mail', run: ({ payload }) => ran.resolve(payload) })])
    await queue.add('hello', { to: 'you' })
    assert.deepEqual(await ran.promise, { to: 'you' })
  })

  test('while a slot is on its way to another node calls are refused and nothing is done; then they follow it', async (t) => {
    const prefix = freshPrefix()
    const type = 'moving'
    const engine = await openEngine(`${cluster.url(prefix)}&timeout=400`, settings)
    t.after(() => engine.close())
    await engine.enqueue([newJob({ type }), newJob({ type })])
    const source = nodeOf(prefix, type)
    const target = cluster.primaries.find((node) => node !== source)
    assert.ok(target)
    const slot = slotOf(prefixOfType(prefix, type))
    const [from, to] = [source, target].map(({ url }) => new Redis(url))
    assert.ok(from && to)
    t.after(() => {
      from.disconnect()
      to.disconnect()
    })
    const [fromId, toId] = [String(await from.cluster('MYID')), String(await to.cluster('MYID'))]
    await to.cluster('SETSLOT', slot, 'IMPORTING', fromId)
    await from.cluster('SETSLOT', slot, 'MIGRATING', toId)
    const before = await keysOf(source.url, prefix)
    const busy = coded('ERR_STORAGE_BUSY', /moving this slot/)
    await assert.rejects(engine.enqueue([newJob({ type })]), busy)
    const consumer = await engine.consume({ types: [{ type, leaseMs: 30_000 }], worker: 'w' })
    const request = { max: 5, waitMs: 0, signal: new AbortController().signal }
    await assert.rejects(consumer.claim(request), busy)
    assert.deepEqual(await keysOf(source.url, prefix), before, 'a script has left something behind')
    const keys = await from.call('cluster', 'getkeysinslot', slot, 1_000)
    assert.ok(Array.isArray(keys))
    const [moved = '', ...others] = keys.map(String)
    const move = (key: string) => from.call('migrate', '127.0.0.1', target.port, key, 0, 5_000)
    await move(moved)
    await assert.rejects(engine.enqueue([newJob({ type })]), busy)
    const both = await engine.consume({
      types: ['staying', type].map((name) => ({ type: name, leaseMs: 30_000 })),
      worker: 'both',
    })
    const staying = Array.from({ length: 3 }, () => newJob({ type: 'staying' }))
    for (const job of staying) {
      await engine.enqueue([job])
      const [lease] = await both.claim({ ...request, waitMs: 20_000 })
      assert.equal(lease?.job.id, job.id, 'a type that is not moved goes on')
    }
    for (const key of others) await move(key)
    for (const redis of [to, from]) await redis.cluster('SETSLOT', slot, 'NODE', toId)
    assert.equal((await consumer.claim(request)).length, 2)
    await engine.enqueue([newJob({ type })])
    assert.equal((await consumer.claim(request)).length, 1)
  })

  test('jobs that a keeper noted with a schedule and did not store are stored by a reaper, once', async (t) => {
    const prefix = freshPrefix()
    const engine = await openEngine(cluster.url(prefix), settings)
    t.after(() => engine.close())
    const [left, fresh] = [newJob({ type: 'left' }), newJob({ type: 'left' })]
    const index = Math.floor((slotOf(`${prefix}:{:}`) * 3) / 16_384)
    const key = `${prefix}:{:}::fired`
    await withRedis(cluster.primaries[index]?.url ?? '', async (redis) => {
      const nowMs = systemClock.nowMs()
      await redis.hset(key, 'died', `${nowMs - 11_000}:${JSON.stringify([left])}`)
      await redis.hset(key, 'working', `${nowMs}:${JSON.stringify([fresh])}`)
      const reaper = await engine.consume({ types: 'every', worker: 'reaper' })
      const request = { max: 1, waitMs: 0, signal: new AbortController().signal, from: 'expired' } as const
      for (let pass = 0; pass < 2; pass += 1) assert.deepEqual(await reaper.claim(request), [])
      assert.deepEqual(await redis.hkeys(key), ['working'])
    })
    assert.equal((await engine.counts()).left?.ready, 1)
    assert.equal((await engine.inspector?.find([left.id]))?.[0]?.state, 'queued')
  })

  test('when a node is away, the types of others go on, and its own are told', async (t) => {
    const own = await startRedisCluster({ nodeTimeoutMs: 1_000, settings: { 'cluster-require-full-coverage': 'no' } })
    t.after(() => own.end())
    const prefix = freshPrefix()
    const index = (type: string): number => Math.floor((slotOf(`${prefix}:{${type}}`) * 3) / 16_384)
    const names = Array.from({ length: 30 }, (_, number) => `type${number}`)
    const away = names.find((type) => index(type) !== index(':')) ?? ''
    const present = names.find((type) => index(type) !== index(away)) ?? ''
    const engine = await openEngine(`${own.url(prefix)}&timeout=300`, settings)
    t.after(() => engine.close())
    const types = [away, present].map((type) => ({ type, leaseMs: 30_000 }))
    const consumer = await engine.consume({ types, worker: 'w' })
    const troubles: string[] = []
    consumer.listen({ onTrouble: (error) => troubles.push(String(error)) })
    await engine.enqueue([newJob({ type: away }), newJob({ type: present })])
    const request = { max: 5, waitMs: 20_000, signal: new AbortController().signal }
    const leases = await consumer.claim(request)
    assert.deepEqual(leases.map(({ job }) => job.type).sort(), [away, present].sort())
    await own.primaries[index(away)]?.kill()
    await assert.rejects(engine.enqueue([newJob({ type: away })]), /Redis/)
    const second = newJob({ type: present })
    await engine.enqueue([second])
    assert.deepEqual(
      (await consumer.claim(request)).map(({ job }) => job.id),
      [second.id],
    )
    assert.ok(
      troubles.some((text) => text.includes(`'${away}' is away`)),
      troubles.join('\n'),
    )
    const outcome = { kind: 'complete', result: '1', durationMs: 1 } as const
    const settlements = leases.map((lease) => ({ lease, outcome }))
    await assert.rejects(consumer.settle(settlements), /Redis/)
    // The worker repeats the whole call: what was applied is not reported as lost.
    const applied = settlements.filter(({ lease }) => lease.job.type === present)
    assert.deepEqual(await consumer.settle(applied), [])
    const isTold = async (): Promise<boolean> => {
      const findings = (await engine.diagnose?.()) ?? []
      return findings.some(({ severity, subject }) => severity === 'error' && subject === 'cluster')
    }
    // The other nodes hold it for dead after a while.
    while (!(await isTold())) await sleep(100)
  })
})
