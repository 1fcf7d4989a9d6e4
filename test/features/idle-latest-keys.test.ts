/** The highest number of a latest key is remembered for as long as it is needed, and a week longer: not for ever (I4). */
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { before, describe, test } from 'node:test'
import type { Engine } from '../../src/engine/engine.ts'
import { openEngine } from '../../src/engine/open.ts'
import type { Outcome } from '../../src/engine/outcome.ts'
import { migrate } from '../../src/engines/postgres/module.ts'
import { TestClock } from '../../src/testing/test-clock.ts'
import { newJob } from '../fixtures/new-job.ts'
import { tempFiles } from '../fixtures/temp-files.ts'
import { type PostgresServer, postgresServer, query, schemaUrl } from '../servers/postgres.ts'

const DAY_MS = 86_400_000
const DONE: Outcome = { kind: 'complete', result: '1', durationMs: 1, keep: 0 }
const DEAD: Outcome = { kind: 'dead', error: { name: 'Error', code: null, message: 'no', stack: null } }

const files = tempFiles()
let server: PostgresServer
before(async () => {
  server = await postgresServer()
})

interface Store {
  readonly engine: Engine
  keys(): Promise<readonly string[]>
}

const STORES: Readonly<Record<string, (clock: TestClock) => Promise<Store>>> = {
  async sqlite(clock) {
    const file = files.next()
    const engine = await openEngine(`sqlite:${file}`, { clock, migrate: true })
    return {
      engine,
      keys: async () => {
        const handle = new DatabaseSync(file)
        const rows = handle.prepare('SELECT latest_key FROM job_latest ORDER BY latest_key').all()
        handle.close()
        return rows.map(({ latest_key: key }) => String(key))
      },
    }
  },
  async postgres(clock) {
    const { url, schema } = schemaUrl(server)
    await migrate(url, { clock, migrate: true })
    const engine = await openEngine(url, { clock, migrate: true })
    return {
      engine,
      keys: async () => {
        const rows = await query<{ latest_key: string }>(
          server.url,
          `select latest_key from ${schema}.millrace_latest order by latest_key`,
        )
        return rows.map(({ latest_key: key }) => key)
      },
    }
  },
}

const version = (key: string, seq: number) => newJob({ type: 'index', latest: { key, seq } })

async function run(engine: Engine, outcome: Outcome): Promise<void> {
  const consumer = await engine.consume({ types: [{ type: 'index', leaseMs: 60_000 }], worker: 'host:1:1' })
  const [lease] = await consumer.claim({ max: 1, waitMs: 0, signal: new AbortController().signal })
  assert.ok(lease)
  assert.deepEqual(await consumer.settle([{ lease, outcome }]), [])
  await consumer.close()
}

async function pass(engine: Engine): Promise<void> {
  while (await engine.retention?.compact()) {
    // There is more to do.
  }
}

for (const [name, create] of Object.entries(STORES)) {
  describe(`${name}: latest keys that nobody uses`, () => {
    test('an older version is refused for a week after the newer one was removed, and then the key is forgotten', async () => {
      const clock = new TestClock()
      const { engine, keys } = await create(clock)
      await engine.enqueue([version('gone', 7)])
      await run(engine, DONE)
      await engine.enqueue([version('dead', 7)])
      await run(engine, DEAD)
      await engine.enqueue([version('waits', 7)])
      for (let day = 0; day <= 6; day += 1) {
        await pass(engine)
        const [receipt] = await engine.enqueue([version('gone', 6)])
        assert.equal(receipt?.status, 'stale', `day ${day}`)
        await clock.advance(DAY_MS)
      }
      await pass(engine)
      assert.deepEqual(await keys(), ['dead', 'waits'])
      const [late] = await engine.enqueue([version('dead', 6)])
      assert.equal(late?.status, 'stale', 'a dead letter may be replayed, so its number is needed')
      await engine.close()
    })

    test('a key that is used again meanwhile begins its week anew', async () => {
      const clock = new TestClock()
      const { engine, keys } = await create(clock)
      await engine.enqueue([version('k', 1)])
      await run(engine, DONE)
      await pass(engine)
      await clock.advance(6 * DAY_MS)
      await engine.enqueue([version('k', 2)])
      await run(engine, DONE)
      await pass(engine)
      await clock.advance(2 * DAY_MS)
      await pass(engine)
      assert.deepEqual(await keys(), ['k'])
      await clock.advance(6 * DAY_MS)
      await pass(engine)
      assert.deepEqual(await keys(), [])
      await engine.close()
    })

    test('thousands of them are forgotten in one pass', async () => {
      const clock = new TestClock()
      const { engine, keys } = await create(clock)
      const jobs = Array.from({ length: 1_200 }, (_, n) => version(`k${n}`, 1))
      await engine.enqueue(jobs)
      for (const { id } of jobs.slice(0, 1_199)) await engine.controls?.cancel(id, { who: 'test', reason: 'over' })
      await pass(engine)
      await clock.advance(7 * DAY_MS)
      await pass(engine)
      assert.deepEqual(await keys(), ['k1199'])
      await engine.close()
    })
  })
}
