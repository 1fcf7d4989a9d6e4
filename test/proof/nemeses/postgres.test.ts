/** Each fault of the Postgres of a round is seen by its clients while it lasts, heals itself, and jobs run again. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { z } from 'zod'
import { parseUrl } from '../../../src/engines/postgres/options.ts'
import { defineJob, type Mill, open } from '../../../src/index.ts'
import { openPostgresStore, stopPostgresServers } from '../engines/postgres.ts'
import type { Crew, Nemesis, Scene, Store } from '../scene.ts'

const GONE = /ECONNRE|terminat|starting up|shutting down|recovery/
/** What a client that writes all the time is told. Not of those that only make it wait, or that strike one session of many. */
const TOLD: Readonly<Record<string, RegExp>> = {
  'server-restart': GONE,
  'server-crash': GONE,
  'server-failover': GONE,
  'server-failover-behind': GONE,
  'terminate-all': /administrator command|terminat/,
  'cancel-statements': /user request/,
  'connection-limit': /too many clients|reserved/,
  'role-timeouts': /lock timeout/,
  'read-only': /read-only/,
  'disk-full': /No space left/,
}

const TRIES_MAX = 5

const job = defineJob({ type: 'plain', payload: z.object({ n: z.number() }), lease: '1s', attempts: 10 })
const nobody = (): never => {
  throw new Error('no process is there')
}
const crew: Crew = { processes: [], whileStopped: nobody, replace: nobody, launch: nobody }

let store: Store
let mill: Mill

before(async () => {
  store = await openPostgresStore({ seed: 1, folder: '' })
  mill = await open(store.url)
  await mill.work([job.handledBy(async ({ payload }) => payload.n)], { reap: '500ms' })
})

after(async () => {
  await mill.close()
  await store.destroy()
  await stopPostgresServers()
})

/** As short as each of them can be. */
const shortest = (): number => 0

async function strike(nemesis: Nemesis): Promise<string> {
  let told = ''
  const scene: Scene = {
    store,
    crew,
    folder: '',
    during: async (fault, act) => {
      assert.equal(fault.nemesis, nemesis.name)
      let isOver = false
      const writing = (async () => {
        while (!isOver)
          for (const connectionString of parseUrl(store.url).servers) told += await write(connectionString)
      })()
      await act()
      isOver = true
      await writing
    },
  }
  await nemesis.strike(scene, shortest)
  return told
}

/** What a client is told that connects, stores much, waits a little and takes it back. */
async function write(connectionString: string): Promise<string> {
  const client = new pg.Client({ connectionString })
  client.on('error', () => {})
  const table = `${parseUrl(store.url).schema}.jobs`
  try {
    await client.connect()
    await client.query(
      `BEGIN; INSERT INTO ${table} (type, payload) SELECT 'big', repeat('x', 1000) FROM generate_series(1, 200)`,
    )
    await client.query('SELECT pg_sleep(0.02)')
    await client.query('ROLLBACK')
    return ''
  } catch (error) {
    return `${error}\n`
  } finally {
    await client.end().catch(() => {})
  }
}

/** The first jobs may meet what is left of the fault: then the outcome is unknown, and another one is asked for. */
async function works(n: number): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      const receipt = await mill.enqueue(job, { n })
      assert.equal(await mill.result(receipt, { timeout: '20s' }), n)
      return
    } catch (error) {
      if (tries === 10) throw error
    }
  }
}

test('every fault of Postgres is seen while it lasts and heals itself', { timeout: 180_000 }, async () => {
  for (const [n, nemesis] of store.nemeses.entries()) {
    if ((nemesis.excuse?.(store) ?? null) !== null) continue
    const expected = TOLD[nemesis.name] ?? /^/
    let told = await strike(nemesis)
    // It lasts a moment, in which a busy machine may not get round to a write.
    for (let tries = 1; !expected.test(told) && tries < TRIES_MAX; tries += 1) told = await strike(nemesis)
    assert.match(told, expected, nemesis.name)
    await works(n)
  }
})
