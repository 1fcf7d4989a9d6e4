import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Redis } from 'ioredis'
import { newJob } from '../../../test/fixtures/new-job.ts'
import { tcpProxy } from '../../../test/fixtures/tcp-proxy.ts'
import { prefixUrl, startRedis, withRedis } from '../../../test/servers/redis.ts'
import { openEngine } from '../../engine/open.ts'
import type { NewJob } from '../../job/job.ts'
import { type Clock, systemClock } from '../../time/clock.ts'
import { RedisDatabase } from './database.ts'
import { enqueueArgs, enqueuePlainScript } from './enqueue-plain.ts'
import { commitScript, publishScript, storeInChunks } from './large-batch.ts'
import { parseUrl } from './options.ts'
import type { Script } from './scripts.ts'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))

const PAYLOAD = JSON.stringify({ text: 'x'.repeat(189) })

function batchOf(count: number, extra: (index: number) => Partial<NewJob> = () => ({})): readonly NewJob[] {
  return Array.from({ length: count }, (_, index) => newJob({ payload: PAYLOAD, ...extra(index) }))
}

/** A server of its own, because SLOWLOG and FLUSHALL concern all that a server holds. */
async function stage(t: TestContext) {
  const server = await startRedis({ settings: { 'slowlog-log-slower-than': '1000', 'slowlog-max-len': '10000' } })
  t.after(() => server.end())
  const { url, prefix } = prefixUrl(server)
  // The batch in one script may take longer than the default on a loaded machine.
  const engine = await openEngine(`${url}&timeout=60000`, { clock: systemClock, migrate: false })
  t.after(() => engine.close())
  const { address, options } = parseUrl(`${url}&timeout=60000`)
  const database = new RedisDatabase({ source: { address }, clock: systemClock, options })
  t.after(() => database.close())
  await database.reach()
  return { server, url, prefix, engine, database }
}

/** By the server's own measure, the longest time for which it served nobody else, in microseconds. */
async function longestCommand(redis: Redis, work: () => Promise<unknown>): Promise<number> {
  await redis.call('SLOWLOG', 'RESET')
  await work()
  const entries = await redis.call('SLOWLOG', 'GET', '-1')
  assert.ok(Array.isArray(entries))
  return Math.max(0, ...entries.map((entry) => Number(entry[2])))
}

for (const [what, extra] of [
  ['ready', () => ({})],
  ['delayed', (index: number) => ({ delayMs: 60_000 + (index % 100) })],
] as const)
  test(`a batch of 50 000 ${what} jobs stops other clients for a fraction of what one script takes`, {
    timeout: 240_000,
  }, async (t) => {
    const { server, engine, database } = await stage(t)
    await withRedis(server.url, async (redis) => {
      const jobs = batchOf(50_000, extra)
      const whole = await longestCommand(redis, () => database.run(enqueuePlainScript(), enqueueArgs(jobs)))
      await redis.flushall()
      const longest = await longestCommand(redis, () => engine.enqueue(jobs))
      t.diagnostic(`one script ${whole} µs, the longest command of the batch ${longest} µs`)
      const counts = (await engine.counts()).greet
      assert.equal(Number(counts?.ready) + Number(counts?.delayed), jobs.length)
      assert.ok(longest * 4 < whole, `${longest} µs, where one script took ${whole} µs`)
    })
  })

/** A process of its own that enqueues three chunks through the proxy. */
const PRODUCER = `
import { openEngine } from './src/engine/open.ts'
import { systemClock } from './src/time/clock.ts'
import { newJob } from './test/fixtures/new-job.ts'
const engine = await openEngine(process.argv[1], { clock: systemClock, migrate: false })
await engine.enqueue(Array.from({ length: 3_000 }, (_, index) => newJob({ payload: String(index) })))
`

/** Kills a producer whose script the server sees or not, while it waits for the answer. */
async function killedAt(t: TestContext, url: string, script: Script, server: 'sees it' | 'sees nothing') {
  const proxy = await tcpProxy(t, `${url}&timeout=60000`)
  proxy.freezeAt(script.sha, server)
  const args = ['--conditions=millrace-source', '--input-type=module', '--eval', PRODUCER, proxy.url]
  const child = spawn(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 'ignore', 'inherit'] })
  const exited = once(child, 'exit')
  while (proxy.frozen === 0 && child.exitCode === null) await systemClock.sleep(20)
  child.kill('SIGKILL')
  assert.deepEqual(await exited, [null, 'SIGKILL'])
}

/** One pass of a reaper whose clock differs by so much. */
async function reap(t: TestContext, url: string, byMs: number): Promise<void> {
  const clock: Clock = {
    nowMs: () => systemClock.nowMs() + byMs,
    monotonicMs: () => systemClock.monotonicMs(),
    sleep: (ms, signal) => systemClock.sleep(ms, signal),
    after: (ms, run) => systemClock.after(ms, run),
  }
  const engine = await openEngine(url, { clock, migrate: false })
  t.after(() => engine.close())
  const reaper = await engine.consume({ types: 'every', worker: 'reaper' })
  const signal = new AbortController().signal
  assert.deepEqual(await reaper.claim({ from: 'expired', max: 10, waitMs: 0, signal }), [])
}

test('a producer killed before its batch is committed leaves nothing but what expires', {
  timeout: 120_000,
}, async (t) => {
  const { server, url, prefix, engine } = await stage(t)
  await killedAt(t, url, commitScript(), 'sees nothing')
  await reap(t, url, 60_000)
  assert.deepEqual(await engine.counts(), {})
  await withRedis(server.url, async (redis) => {
    const left = (await redis.keys('*')).filter((key) => key !== `${prefix}::reaped`)
    assert.equal(left.length, 3, left.join(' '))
    for (const key of left) {
      assert.ok(key.startsWith(`${prefix}::staged:`), key)
      const ms = await redis.pttl(key)
      assert.ok(ms > 0 && ms <= 600_000, `${key} stays for ${ms} ms`)
    }
  })
})

for (const [when, byMs] of [
  ['a minute later', 60_000],
  ['after the clock was set back', -3_600_000],
] as const)
  test(`the rest of a batch whose producer was killed after the commit is stored by the reaper, once and in order: ${when}`, {
    timeout: 120_000,
  }, async (t) => {
    const { server, url, prefix, engine, database } = await stage(t)
    // The server then knows the script, and sees all of it in one command.
    await database.run(publishScript(), ['none', 1, 1])
    await killedAt(t, url, publishScript(), 'sees it')
    const counts = async () => Number((await engine.counts()).greet?.ready)
    while ((await counts()) !== 1_000) await systemClock.sleep(20)
    await reap(t, url, byMs)
    assert.equal(await counts(), 3_000)
    await reap(t, url, byMs)
    assert.equal(await counts(), 3_000)
    await withRedis(server.url, async (redis) => {
      const ids = await redis.zrange(`${prefix}:greet:prioritized`, '0', '-1')
      const payloads = await Promise.all(ids.map((id) => redis.hget(`${prefix}:greet:${id}`, 'data')))
      assert.deepEqual(
        payloads,
        Array.from({ length: 3_000 }, (_, index) => String(index)),
      )
      assert.deepEqual(await redis.keys(`${prefix}::staged:*`), [])
      assert.equal(await redis.exists(`${prefix}::batches`), 0)
    })
  })

test('a batch of which a chunk has expired is refused whole', { timeout: 60_000 }, async (t) => {
  const { server, engine, database } = await stage(t)
  await assert.rejects(storeInChunks(database, batchOf(2_000), { stagedMs: 1 }), { code: 'ERR_STORAGE_BUSY' })
  assert.deepEqual(await engine.counts(), {})
  await withRedis(server.url, async (redis) => assert.deepEqual(await redis.keys('*'), []))
})

test('a batch for which the memory does not suffice is refused whole', { timeout: 120_000 }, async (t) => {
  const { server, engine } = await stage(t)
  await withRedis(server.url, async (redis) => {
    const used = Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1])
    await redis.config('SET', 'maxmemory', String(used + 4_000_000))
    await assert.rejects(engine.enqueue(batchOf(50_000)), { code: 'ERR_STORAGE_FULL' })
    assert.deepEqual(await engine.counts(), {})
    assert.deepEqual(await redis.keys('*'), [])
  })
})

test('of a large batch that is repeated only what is missing is stored, and delays count from the call', {
  timeout: 60_000,
}, async (t) => {
  const { engine } = await stage(t)
  const jobs = batchOf(2_500, (index) => (index % 2 === 0 ? {} : { delayMs: 60_000 }))
  await engine.enqueue(jobs.slice(1_000, 1_010))
  const statuses = (await engine.enqueue(jobs)).map(({ status }) => status)
  assert.deepEqual(
    statuses,
    jobs.map((_, index) => (index >= 1_000 && index < 1_010 ? 'duplicate' : 'enqueued')),
  )
  assert.ok((await engine.enqueue(jobs)).every(({ status }) => status === 'duplicate'))
  const { ready, delayed } = (await engine.counts()).greet ?? {}
  assert.deepEqual({ ready, delayed }, { ready: 1_250, delayed: 1_250 })
  const due = new Set<number | null>()
  for (const { id } of [jobs[1], jobs[1_999], jobs[2_499]].filter((job) => job !== undefined)) {
    due.add((await engine.inspector?.find([id]))?.[0]?.runAtMs ?? null)
  }
  assert.equal(due.size, 1)
})
