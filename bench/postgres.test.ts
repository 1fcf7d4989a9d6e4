/** Every contender of the Postgres family delivers what it was given, on a server that keeps what it acknowledged. */
import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { after, before, describe, test } from 'node:test'
import type { ContenderModule } from './contender.ts'
import { CONTENDERS } from './contenders/index.ts'
import { FILLED_PAYLOAD, makePayload } from './payload.ts'
import { newPlace, placeWithin, removePlace } from './place.ts'
import { SCENARIOS } from './scenarios/index.ts'
import { databaseOf, holdTransaction, withClient } from './servers/postgres.ts'
import { type Server, startDurablePostgres } from './servers/start.ts'
import { assertSound, entryOf, run } from './testing/trial.ts'

const ENTRIES = CONTENDERS.filter((entry) => entry.family === 'postgres')
const TRIED = [
  'enqueue',
  'drain',
  'drain-20k',
  'pickup',
  'work',
  'horizon',
  'claim',
  'memory',
  'batch',
  'millions',
  'idle',
]
/** A peer's own speed is not what is tested here. Real work needs its wake-up, too. */
const TRIED_WITH_PEERS = ['work']

describe('the Postgres family', { concurrency: 2 }, () => {
  let server: Server
  before(async () => {
    server = await startDurablePostgres()
  })
  after(() => server.stop())

  const databases = (): Promise<readonly string[]> =>
    withClient(server.url, async (client) => {
      const { rows } = await client.query(`select datname from pg_database where datname like 'bench%'`)
      return rows.map((row) => String(row.datname))
    })

  // X120
  test(`finds every delivery of Millrace: ${TRIED.join(', ')}`, { timeout: 600_000 }, async () => {
    const { results } = await run({ scenarios: TRIED, contenders: [entryOf('millrace-postgres')], server })
    assert.equal(results.length, TRIED.length)
    assertSound(results)
  })

  for (const entry of ENTRIES.filter(({ name }) => name !== 'millrace-postgres')) {
    test(`finds every delivery of ${entry.name}`, { timeout: 300_000 }, async () => {
      const { results } = await run({ scenarios: TRIED_WITH_PEERS, contenders: [entry], server })
      assertSound(results)
    })
  }

  const filled = ENTRIES.filter(({ excused }) => excused.claim === undefined)
  for (const entry of filled) {
    test(`fills up what was claimed from ${entry.name}, and numbers no job twice`, { timeout: 300_000 }, async (t) => {
      const place = await newPlace(tmpdir(), server.url)
      const module: ContenderModule = await import(entry.module)
      const contender = module.create(entry)
      await contender.setup(place)
      t.after(async () => {
        await contender.teardown()
        await removePlace(place)
      })
      const { claiming } = contender
      assert.ok(claiming)
      const levels = { waiting: 100, scheduled: 30, finished: 20 }
      await claiming.fill(levels)
      const first = await claiming.claim(60)
      await first.complete()
      await claiming.fill(levels)
      assert.equal(await contender.remaining(), levels.waiting)
      const rest = await claiming.claim(1_000)
      const numbers = [...first.payloads, ...rest.payloads].map(({ n }) => n)
      assert.deepEqual(
        numbers.toSorted((one, other) => one - other),
        Array.from({ length: 160 }, (_, n) => n),
      )
    })
  }

  test('leaves no scenario of the family untried', () => {
    const all = SCENARIOS.filter((each) => each.families?.includes('postgres') ?? true)
    assert.deepEqual(TRIED.toSorted(), all.map((each) => each.name).toSorted())
  })

  test('a place has an empty database of its own, which goes with it and with all that lay within', async () => {
    const place = await newPlace(tmpdir(), server.url)
    const within = await placeWithin(place)
    const names = [place, within].map(({ url }) => databaseOf(String(url)))
    assert.equal(new Set(names).size, 2)
    const there = await databases()
    assert.ok(names.every((name) => there.includes(name)))
    // Somebody who is still connected must not keep it.
    const release = await holdTransaction(String(within.url))
    await removePlace(place)
    const left = await databases()
    assert.ok(names.every((name) => !left.includes(name)))
    await assert.rejects(release())
  })

  test('a held transaction holds what vacuum may remove, until it is released', async () => {
    const place = await newPlace(tmpdir(), server.url)
    const url = String(place.url)
    const release = await holdTransaction(url)
    /** Vacuum cuts off the pages of a table when nobody can see a row in them any more. */
    const takesSpace = (): Promise<boolean> =>
      withClient(url, async (client) => {
        await client.query('vacuum things')
        const { rows } = await client.query(`select pg_relation_size('things') > 0 as takes`)
        return rows[0]?.takes === true
      })
    await withClient(url, async (client) => {
      await client.query('create table things as select generate_series(1, 100) as n')
      await client.query('delete from things')
    })
    assert.equal(await takesSpace(), true)
    await release()
    assert.equal(await takesSpace(), false)
    await removePlace(place)
  })

  test('a payload made by Postgres is the one that a producer makes', async () => {
    const filled = await withClient(server.url, async (client) => {
      const { rows } = await client.query(
        `select ${FILLED_PAYLOAD} as payload from (select 4321::text as n) as numbers`,
      )
      return String(rows[0]?.payload)
    })
    assert.deepEqual(JSON.parse(filled), makePayload(4321))
  })
})
