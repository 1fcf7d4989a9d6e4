import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { type TestContext, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { dropPrefix, prefixUrl, redisServer, withRedis } from '../../../test/servers/redis.ts'
import { TestClock } from '../../testing/test-clock.ts'
import { Connection } from './connection.ts'
import { RedisConsumer } from './consumer.ts'
import { RedisCore } from './core.ts'
import { RedisDatabase } from './database.ts'
import { clientFor, type RedisClient } from './driver.ts'
import { parseUrl } from './options.ts'
import { BlockingConnection, Wakeups } from './wakeups.ts'

const POLL_MS = 60_000
const GRACE_MS = 5_000
/** Of all timers here, only the deadline of a wait at the server is longer. */
const LONG_MS = 50_000
const never = new AbortController().signal

/** The deadlines that are running. `onEnd` is called when one is cancelled. */
function deadlines(t: TestContext, onEnd: () => void = () => {}): ReadonlySet<NodeJS.Timeout> {
  const running = new Set<NodeJS.Timeout>()
  const [start, end] = [globalThis.setTimeout, globalThis.clearTimeout]
  t.mock.method(globalThis, 'setTimeout', (run: () => void, ms: number) => {
    const timer = start(run, ms)
    if (ms > LONG_MS) running.add(timer)
    return timer
  })
  t.mock.method(globalThis, 'clearTimeout', (timer: NodeJS.Timeout) => {
    end(timer)
    if (running.delete(timer)) onEnd()
  })
  // After a failed assertion too, or they would keep the process alive.
  t.after(() => {
    for (const timer of running) end(timer)
  })
  return running
}

/** Waits over a connection that is always ready. `answer` is what its server says to the wait. */
function staged(t: TestContext) {
  const running = deadlines(t)
  let asked = Promise.withResolvers<unknown>()
  const client: RedisClient = {
    status: 'ready',
    options: {},
    connect: () => Promise.resolve(),
    disconnect: () => asked.reject(new Error('Connection is closed.')),
    duplicate: () => client,
    call: () => {
      asked = Promise.withResolvers()
      return asked.promise
    },
    on: () => {},
  }
  const clock = new TestClock()
  const connection = new BlockingConnection(new Connection(client, GRACE_MS), GRACE_MS, () => {})
  const wakeups = new Wakeups(connection, clock, { markers: ['p:mail:marker'], pollMs: POLL_MS, putBack: () => {} })
  const caller = new AbortController()
  /** What a wait of the caller has left behind: deadlines, timers of the injected clock, listeners. */
  const left = () => [running.size, clock.waiting, getEventListeners(caller.signal, 'abort').length]
  return { connection, wakeups, clock, caller, left, answer: (value: unknown) => asked.resolve(value) }
}

test('a wait that a marker or the server ends leaves nothing behind a turn later', async (t) => {
  const { wakeups, caller, left, answer } = staged(t)
  for (const value of [['p:mail:marker', '0', '0'], null]) {
    const waiting = wakeups.wait(30_000, caller.signal)
    assert.deepEqual(left(), [1, 1, 1])
    answer(value)
    assert.equal(await waiting, true)
    await turn()
    assert.deepEqual(left(), [0, 0, 0])
  }
})

test('what waited at the server no longer listens for the end of its caller', async (t) => {
  const { connection, caller, left, answer } = staged(t)
  const popped = connection.pop(['p:mail:marker'], POLL_MS, caller.signal)
  assert.deepEqual(left(), [1, 0, 1])
  answer(['p:mail:marker', '0', '7'])
  assert.deepEqual(await popped, { key: 'p:mail:marker', member: '0', score: 7 })
  await turn()
  assert.deepEqual(left(), [0, 0, 0])
})

test('a wait that its caller or the time ends leaves only what is heard, and closing ends that', async (t) => {
  const { wakeups, clock, caller, left } = staged(t)
  const timely = wakeups.wait(30_000, caller.signal)
  await clock.advance(30_000)
  assert.equal(await timely, false)
  await turn()
  assert.deepEqual(left(), [1, 0, 0])
  const aborted = wakeups.wait(30_000, caller.signal)
  assert.deepEqual(left(), [1, 1, 1])
  caller.abort()
  assert.equal(await aborted, false)
  await turn()
  assert.deepEqual(left(), [1, 0, 0])
  const closed = wakeups.wait(30_000, never)
  wakeups.close()
  await closed
  await turn()
  assert.deepEqual(left(), [0, 0, 0])
})

/** Says when one of its timers is cancelled. */
class WatchedClock extends TestClock {
  readonly #onCancel: () => void

  constructor(onCancel: () => void) {
    super()
    this.#onCancel = onCancel
  }

  override after(ms: number, run: () => void): () => void {
    const cancel = super.after(ms, run)
    return () => {
      cancel()
      this.#onCancel()
    }
  }
}

test('the claim that a marker wakes is on its way before the timers of the wait are ended', async (t) => {
  const server = await redisServer()
  const { url, prefix } = prefixUrl(server)
  const { address, options } = parseUrl(url)
  const done: string[] = []
  const clock = new WatchedClock(() => done.push('timer ended'))
  deadlines(t, () => done.push('deadline ended'))
  let waits = Promise.withResolvers<void>()
  const client = await clientFor(address)
  const duplicate = client.duplicate.bind(client)
  client.duplicate = (chosen) => {
    const copy = duplicate(chosen)
    const call = copy.call.bind(copy)
    copy.call = (command, args) => {
      if (command === 'evalsha' || command === 'bzpopmin') done.push(command)
      if (command === 'bzpopmin') waits.resolve()
      return call(command, args)
    }
    return copy
  }
  const database = new RedisDatabase({ source: { client }, clock, options })
  await database.reach()
  const core = new RedisCore(database, clock, POLL_MS)
  const consumer = new RedisConsumer(core, { types: [{ type: 'mail', leaseMs: 60_000 }], worker: 'w' })
  t.after(async () => {
    await core.close()
    await dropPrefix(server.url, prefix)
  })
  const claiming = consumer.claim({ max: 1, waitMs: 30_000, signal: never })
  await waits.promise
  waits = Promise.withResolvers()
  done.length = 0
  // From elsewhere, so that the next answer on the engine's connection is that of the claim. No job waits, so it looks and waits again.
  await withRedis(server.url, (redis) => redis.zadd(`${prefix}:mail:marker`, 0, '0'))
  await waits.promise
  assert.deepEqual(done, ['evalsha', 'deadline ended', 'timer ended', 'bzpopmin'])
  await consumer.close()
  assert.deepEqual(await claiming, [])
})
