import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { withoutPackage } from '../../../test/fixtures/without-package.ts'
import { freshPrefix, redisServer, startRedis } from '../../../test/servers/redis.ts'
import { open } from '../../client/mill.ts'
import type { Beat } from '../../engine/presence.ts'
import { defineJob } from '../../job/definition.ts'
import { attachPresence, type PresenceOptions } from '../../observe/presence.ts'
import { capturingLog, type LogLine } from '../../testing/capture.ts'
import { heartbeatKey, openPresence, type RedisPresence } from './presence.ts'

const { url } = await redisServer()
const redis = new Redis(url)
after(() => redis.disconnect())

const mail = defineJob({ type: 'mail', run: () => 1 })
const beat = (instance: string, given: Partial<Beat> = {}): Beat => ({
  type: 'mail',
  instance,
  status: 'RUNNING',
  atMs: 1_700_000_000_000,
  lastJobAtMs: null,
  lag: null,
  stoppingSinceMs: null,
  ...given,
})

/** Polls, because Redis tells nobody when a key expires or changes. */
async function until<T>(look: () => Promise<T>, isThere: (found: T) => boolean, withinMs = 60_000): Promise<T> {
  const endMs = Date.now() + withinMs
  for (;;) {
    const found = await look()
    if (isThere(found)) return found
    if (Date.now() > endMs) assert.fail(`not within ${withinMs} ms; last seen: ${JSON.stringify(found)}`)
    await sleep(10)
  }
}

interface Stage extends AsyncDisposable {
  readonly presence: RedisPresence
  readonly mill: Awaited<ReturnType<typeof open>>
  /** The fields of the worker's key, and how long it still holds. */
  read(type: string, instance: string): Promise<{ fields: Readonly<Record<string, unknown>> | null; pttl: number }>
}

async function stage(options: Partial<PresenceOptions> = {}): Promise<Stage> {
  const prefix = `${freshPrefix()}:`
  const presence = await openPresence(url, { prefix })
  const mill = await open('memory:')
  const detach = attachPresence(mill, { presence, ...options })
  return {
    presence,
    mill,
    async read(type, instance) {
      const key = prefix + heartbeatKey(type, instance)
      const [value, pttl] = await Promise.all([redis.get(key), redis.pttl(key)])
      return { fields: value === null ? null : JSON.parse(value), pttl }
    },
    async [Symbol.asyncDispose]() {
      await mill.close()
      await detach()
      await presence.close()
    },
  }
}

// D02 D03 D04 D05
test('a worker writes worker:{type}:{instance_id} with four fields for 30 s', async () => {
  const presence = await openPresence(url)
  const mill = await open('memory:')
  const detach = attachPresence(mill, { presence, lag: () => 7 })
  const id = `host:${process.pid}:${freshPrefix()}`
  const beforeMs = Date.now()
  const worker = await mill.work([mail], { id })
  const key = `worker:mail:${id}`
  const value = await until(
    () => redis.get(key),
    (found) => found !== null,
  )
  const pttl = await redis.pttl(key)
  assert.ok(pttl > 10_000 && pttl <= 30_000, `${pttl} ms`)
  const { timestamp, ...fields } = JSON.parse(value ?? '')
  assert.deepEqual(fields, { status: 'RUNNING', last_message_at: null, consumer_lag: 7 })
  assert.ok(Date.parse(timestamp) >= beforeMs && Date.parse(timestamp) <= Date.now())
  assert.equal(new Date(timestamp).toISOString(), timestamp)
  await worker.stop()
  await detach()
  assert.equal(await redis.exists(key), 0)
  await mill.close()
  await presence.close()
})

// X156
test('who went without a goodbye is remembered, who said goodbye is not', async () => {
  await using presence = await openPresence(url, { prefix: `${freshPrefix()}:` })
  const atMs = 1_700_000_000_000
  await presence.beat(
    [beat('lost'), beat('gone', { type: 'a:b' }), beat('lives', { type: 'a:b', atMs: atMs + 1 })],
    30_000,
  )
  await presence.beat([beat('lost')], 1)
  await until(
    () => presence.list(),
    (beats) => beats.length === 2,
  )
  await presence.gone('gone', ['a:b'])
  assert.deepEqual(await presence.seen(), [
    { type: 'mail', instance: 'lost', atMs },
    { type: 'a:b', instance: 'lives', atMs: atMs + 1 },
  ])
})

// D05 D06
test('it is refreshed while the worker runs, and gone when nobody refreshes it', async () => {
  await using s = await stage({ every: 50, ttl: 20_000, stoppingTtl: 20_000 })
  await s.mill.work([mail], { id: 'w' })
  const first = await until(
    () => s.read('mail', 'w'),
    ({ fields }) => fields !== null,
  )
  const later = await until(
    () => s.read('mail', 'w'),
    ({ fields }) => fields !== null && fields.timestamp !== first.fields?.timestamp,
  )
  assert.ok(later.pttl <= 20_000, `${later.pttl} ms`)
  await s.presence.beat([beat('dead')], 20_000)
  assert.deepEqual((await s.presence.list()).map(({ instance }) => instance).toSorted(), ['dead', 'w'])
  await s.presence.beat([beat('dead')], 100)
  await until(
    () => s.presence.list(),
    (beats) => beats.length === 1,
  )
})

// D07 X155
test('a worker told by a signal to stop says SHUTTING_DOWN for 60 s, and is gone when it has ended', async () => {
  const id = `signalled-${process.pid}-${freshPrefix()}`
  const script = fileURLToPath(new URL('../../../test/fixtures/present-worker.ts', import.meta.url))
  const child = spawn(process.execPath, [script, url, id], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  await once(child.stdout, 'data')
  const key = `worker:slow:${id}`
  const sinceMs = Date.now()
  child.kill('SIGTERM')
  const value = await until(
    () => redis.get(key),
    (found) => found?.includes('SHUTTING_DOWN') === true,
  )
  const pttl = await redis.pttl(key)
  assert.ok(pttl > 35_000 && pttl <= 60_000, `${pttl} ms`)
  const fields = JSON.parse(value ?? '')
  assert.equal(fields.status, 'SHUTTING_DOWN')
  assert.ok(Date.parse(fields.shutting_down_since) >= sinceMs)
  child.stdin.write('go\n')
  assert.deepEqual(await exited, [0, null])
  assert.equal(await redis.exists(key), 0)
  assert.equal(await redis.zscore('millrace:workers', key), null)
})

// D08
test('last_message_at is when the last job was processed', async () => {
  await using s = await stage({ every: 50 })
  await s.mill.work([mail], { id: 'w' })
  const beforeMs = Date.now()
  const settled = s.mill.events.next('job.settled')
  await s.mill.enqueue(mail, null)
  await settled
  const afterMs = Date.now()
  const { fields } = await until(
    () => s.read('mail', 'w'),
    (found) => typeof found.fields?.last_message_at === 'string',
  )
  const atMs = Date.parse(String(fields?.last_message_at))
  assert.ok(atMs >= beforeMs && atMs <= afterMs + 5)
})

test('what was written is read back, types with colons included', async () => {
  await using s = await stage()
  const beats = [
    beat('a:1:ff', { lag: 3, lastJobAtMs: 1_699_999_999_999 }),
    beat('a:1:ff', { type: 'sms:eu:fast' }),
    beat('b', { status: 'SHUTTING_DOWN', stoppingSinceMs: 1_699_999_000_000 }),
  ]
  await s.presence.beat(beats, 10_000)
  const byKey = (one: Beat): string => heartbeatKey(one.type, one.instance)
  const sorted = (list: readonly Beat[]) => list.toSorted((one, other) => (byKey(one) < byKey(other) ? -1 : 1))
  assert.deepEqual(sorted(await s.presence.list()), sorted(beats))
  await s.presence.gone('a:1:ff', ['mail', 'sms:eu:fast'])
  assert.deepEqual(await s.presence.list(), [beats[2]])
  await s.presence.gone('b', ['mail'])
  assert.deepEqual(await s.presence.list(), [])
})

test('a value that is no heartbeat is passed over, and one of another program is read', async () => {
  const prefix = `${freshPrefix()}:`
  await using presence = await openPresence(url, { prefix })
  await presence.beat([beat('text'), beat('number'), beat('wrong'), beat('java')], 10_000)
  const set = (instance: string, value: string) => redis.set(`${prefix}worker:mail:${instance}`, value)
  await set('text', 'not json')
  await set('number', '7')
  await set('wrong', '{"timestamp":"2026-01-01T00:00:00Z","status":"ASLEEP"}')
  await set('java', '{"timestamp":"2026-01-01T00:00:00Z","status":"RUNNING"}')
  assert.deepEqual(await presence.list(), [beat('java', { atMs: Date.UTC(2026, 0, 1) })])
})

test('one that died a day ago leaves the index', async () => {
  const prefix = `${freshPrefix()}:`
  await using presence = await openPresence(url, { prefix })
  const dayMs = 86_400_000
  await presence.beat([beat('old', { atMs: 0 })], 10_000)
  await presence.beat([beat('new', { atMs: dayMs })], 10_000)
  assert.equal(await redis.zcard(`${prefix}millrace:workers`), 2)
  await presence.beat([beat('new', { atMs: dayMs + 1 })], 10_000)
  assert.equal(await redis.zcard(`${prefix}millrace:workers`), 1)
})

test('a client of your own is used and stays open', async () => {
  const presence = await openPresence(redis, { prefix: `${freshPrefix()}:` })
  await presence.beat([beat('w')], 10_000)
  assert.deepEqual(await presence.list(), [beat('w')])
  await presence.close()
  assert.equal(await redis.ping(), 'PONG')
})

test('two programs that share a Redis under prefixes do not see each other', async () => {
  await using one = await openPresence(url, { prefix: `${freshPrefix()}:` })
  await using other = await openPresence(`${url}?prefix=engine`, { prefix: `${freshPrefix()}:` })
  await one.beat([beat('w')], 10_000)
  assert.deepEqual(await other.list(), [])
})

test('a Redis that goes away disturbs no worker, is logged once, and is told again when it is back', async () => {
  const server = await startRedis()
  const lines: LogLine[] = []
  const presence = await openPresence(server.url)
  const mill = await open('memory:')
  const detach = attachPresence(mill, { presence, every: 50, ttl: 500, stoppingTtl: 500, log: capturingLog(lines) })
  await mill.work([mail], { id: 'w' })
  await until(
    () => presence.list(),
    (beats) => beats.length === 1,
  )
  await server.kill()
  await until(
    async () => lines.length,
    (count) => count === 1,
  )
  assert.equal(await mill.result(await mill.enqueue(mail, null)), 1)
  await assert.rejects(presence.list())
  await server.start('gone')
  await until(
    () => presence.list().catch(() => []),
    (beats) => beats.length === 1,
  )
  await until(
    async () => lines.at(-1)?.text,
    (text) => text === 'Presence is reachable again',
  )
  assert.equal(lines.length, 2)
  await server.kill()
  // Neither the goodbye nor the close waits for a server that is not there.
  const startMs = Date.now()
  await mill.close()
  await detach()
  await presence.close()
  assert.ok(Date.now() - startMs < 30_000)
  await server.end()
})

test('a Redis that is down at the start is no error', async () => {
  await using presence = await openPresence('redis://127.0.0.1:1')
  await assert.rejects(presence.beat([beat('w')], 1_000))
})

test('what is no URL of a Redis is refused', async () => {
  for (const wrong of ['here', 'http://127.0.0.1:6379'])
    await assert.rejects(openPresence(wrong), { code: 'ERR_OPTION_INVALID' })
})

test('without ioredis it says what to install, unless a client is given', async () => {
  await withoutPackage('ioredis', async () => {
    await assert.rejects(openPresence(url), { code: 'ERR_MODULE_MISSING', message: /npm install ioredis/ })
    await openPresence(redis)
  })
})
