/** Each fault of the Redis of a round is seen by its clients while it lasts, and is healed when its strike resolves. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Redis } from 'ioredis'
import { tempFiles } from '../../fixtures/temp-files.ts'
import { withRedis } from '../../servers/redis.ts'
import { openRedisStore } from '../engines/redis.ts'
import type { Scene, Store } from '../scene.ts'

/** What a client sees of each. */
const SEEN: Readonly<Record<string, RegExp>> = {
  'redis-restart': /closed/,
  'redis-crash': /closed/,
  'redis-freeze': /slow/,
  'redis-busy': /BUSY/,
  'redis-snapshot': /saved/,
  'redis-failover': /closed/,
  'redis-disconnect': /closed/,
  'redis-pause': /slow/,
  'redis-maxclients': /closed/,
  'redis-password': /WRONGPASS/,
  'redis-full': /OOM/,
  'redis-policy': /allkeys-lru/,
  'redis-scripts': /NOSCRIPT/,
  'redis-replica': /READONLY/,
  'redis-empty': /gone/,
  'redis-bullmq': /paused/,
}
/** Longer than an answer takes on a loaded machine, and shorter than the shortest pause. */
const SLOW_MS = 150
const WRITES = `return redis.call('SET', KEYS[1], 'kept')`
/** Set where no fault touches it, and lost only where the data is. */
const KEPT = 'proof:kept'

const files = tempFiles()
let store: Store
before(async () => {
  store = await openRedisStore({ seed: 1, folder: files.folder })
})
after(() => store.destroy())

const prefix = (): string => new URL(store.url).searchParams.get('prefix') ?? ''
const seed = (): Promise<unknown> =>
  withRedis(store.directUrl, (redis) => redis.multi().set(KEPT, '').sadd(`${prefix()}::types`, 'mail').exec())

/** One client that connects, writes by a script that the server knows, and looks. */
async function look(sha: string): Promise<string> {
  const address = new URL(store.url)
  address.search = ''
  const redis = new Redis(address.href, { lazyConnect: true, maxRetriesPerRequest: 0, retryStrategy: () => null })
  let seen = ''
  const note = (error: unknown): void => {
    seen += `${error}\n`
  }
  redis.on('error', note)
  const startedMs = performance.now()
  try {
    await redis.connect()
    if ((await redis.exists(KEPT)) === 0) seen += 'gone'
    await redis.evalsha(sha, 1, 'proof:written')
    seen += await redis.config('GET', 'maxmemory-policy')
    if ((await redis.hexists(`${prefix()}:mail:meta`, 'paused')) === 1) seen += 'paused'
    if (!(await redis.info('persistence')).includes('rdb_saves:0')) seen += 'saved'
  } catch (error) {
    note(error)
  }
  const isClosed = redis.status === 'end'
  redis.disconnect()
  return seen + (performance.now() - startedMs > SLOW_MS ? 'slow' : '') + (isClosed ? 'closed' : '')
}

/** The settings, the users and what is kept: all that a fault could leave behind. */
function state(): Promise<unknown> {
  return withRedis(store.directUrl, async (redis) => [
    // The server lists them in no order; another one that takes its place has a port and a folder of its own.
    Object.entries(await redis.call('CONFIG', 'GET', '*').then(pairs)).sort(),
    await redis.call('ACL', 'LIST'),
    (await redis.info('replication')).includes('role:master'),
    await redis.hexists(`${prefix()}:mail:meta`, 'paused'),
  ])
}

function pairs(list: unknown): Readonly<Record<string, string>> {
  const values = Array.isArray(list) ? list.map(String) : []
  const own = ['port', 'dir']
  return Object.fromEntries(
    values.flatMap((name, at) => (at % 2 === 0 && !own.includes(name) ? [[name, values[at + 1] ?? '']] : [])),
  )
}

test('every fault of a Redis has something that its clients see of it', () => {
  assert.deepEqual(store.nemeses.map(({ name }) => name).sort(), Object.keys(SEEN).sort())
})

for (const [name, wanted] of Object.entries(SEEN))
  test(`${name}: clients see it while it lasts, and afterwards the server is as before`, async () => {
    const nemesis = store.nemeses.find((one) => one.name === name)
    assert.ok(nemesis)
    await seed()
    const healthy = await state()
    const sha = String(await withRedis(store.directUrl, (redis) => redis.script('LOAD', WRITES)))
    const seen: string[] = []
    const faults: string[] = []
    let isOver = false
    const scene: Scene = {
      store,
      crew: { processes: [], replace: assert.fail, launch: assert.fail, whileStopped: assert.fail },
      folder: files.folder,
      during: async (fault, strike) => {
        faults.push(fault.nemesis)
        await strike()
      },
    }
    // The shortest of each kind.
    const struck = nemesis
      .strike(scene, () => 0)
      .finally(() => {
        isOver = true
      })
    while (!isOver) seen.push(await look(sha))
    await struck
    seen.push(await look(sha))
    assert.deepEqual(faults, [name])
    assert.match(seen.join('\n'), wanted)
    await seed()
    assert.deepEqual(await state(), healthy)
  })
