import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import pg from 'pg'
import { newJob } from '../../../test/fixtures/new-job.ts'
import { dropSchema, postgresServer, query, schemaUrl } from '../../../test/servers/postgres.ts'
import { openEngine } from '../../engine/open.ts'
import { systemClock } from '../../time/clock.ts'
import { PostgresEngine } from './engine.ts'
import { migrate } from './module.ts'

const settings = { clock: systemClock, migrate: true }

/** A consumer on a pool that notes what is asked, and another process that enqueues. */
async function watched(t: TestContext) {
  const server = await postgresServer()
  const { url, schema } = schemaUrl(server)
  await migrate(url, settings)
  const asked: ('claim' | 'look')[] = []
  let beforeLook = async (): Promise<void> => {}
  let underWay = 0
  const pool = new pg.Pool({ connectionString: server.url, max: 4 })
  pool.on('connect', (client) => {
    const query = client.query.bind(client)
    const watch = (...args: unknown[]) => {
      const text = JSON.stringify(args[0])
      const send = async () => {
        underWay += 1
        return Promise.resolve(Reflect.apply(query, client, args)).finally(() => {
          underWay -= 1
        })
      }
      if (text.includes('SKIP LOCKED')) asked.push('claim')
      if (!text.includes('next_ms')) return send()
      asked.push('look')
      return beforeLook().then(send)
    }
    Object.assign(client, { query: watch })
  })
  const engine = await PostgresEngine.connect({ pool }, settings, { schema, pollMs: 60_000 })
  const producer = await openEngine(url, settings)
  t.after(async () => {
    await Promise.all([engine.close(), producer.close()])
    await pool.end()
    await dropSchema(server.url, schema)
  })
  const types = ['greet', 'greet-again'].map((type) => ({ type, leaseMs: 60_000 }))
  const consumer = await engine.consume({ types, worker: 'w' })
  const claim = () => consumer.claim({ max: 10, waitMs: 30_000, signal: new AbortController().signal })
  return {
    asked,
    claim,
    producer,
    insert: () => query(server.url, `insert into ${schema}.jobs (type, payload) values ('greet', '{}')`),
    atNextLook(act: () => Promise<unknown>) {
      beforeLook = async () => {
        beforeLook = async () => {}
        await act()
      }
    },
    /** Until nothing is asked and no answer leads to another question: a claim waits then. */
    untilQuiet: async () => {
      for (let turns = 0; turns < 5; turns += 1) {
        await new Promise((resolve) => setImmediate(resolve))
        if (underWay > 0) turns = 0
      }
    },
    untilAsked: async (wanted: 'claim' | 'look', times: number) => {
      while (asked.filter((one) => one === wanted).length < times) await systemClock.sleep(1)
    },
  }
}

test('a consumer that knows when the next job falls due does not look again after each job', async (t) => {
  const { asked, claim, producer, untilAsked, untilQuiet } = await watched(t)
  const first = claim()
  await untilAsked('look', 1)
  await producer.enqueue([newJob({ type: 'greet', runAtMs: systemClock.nowMs() + 3_600_000 })])
  // Told of a job with a time of its own, it asks when that is.
  await untilAsked('look', 2)
  await untilQuiet()
  const startedMs = systemClock.monotonicMs()
  asked.length = 0
  await producer.enqueue([newJob({ type: 'greet' })])
  assert.equal((await first).length, 1)
  for (let nth = 0; nth < 10; nth += 1) {
    const next = claim()
    // Otherwise it might take the job before it is told of it, and then be told once more.
    await untilQuiet()
    await producer.enqueue([newJob({ type: 'greet-again' })])
    assert.equal((await next).length, 1)
  }
  const tookMs = systemClock.monotonicMs() - startedMs
  const looks = asked.filter((one) => one === 'look').length
  // What it knows holds for a second. A job that was taken before it was announced brings a claim of nothing, and that a look.
  assert.ok(looks <= 5 + tookMs / 1_000, `${looks} looks in ${tookMs} ms: ${asked.join(' ')}`)
})

test('a job with a time of its own starts then, though others were claimed meanwhile without a look', async (t) => {
  const { claim, producer, untilAsked } = await watched(t)
  const first = claim()
  await untilAsked('look', 1)
  const runAtMs = systemClock.nowMs() + 700
  await producer.enqueue([newJob({ type: 'greet', runAtMs })])
  await untilAsked('look', 2)
  await producer.enqueue([newJob({ type: 'greet-again' })])
  const types = [...(await first), ...(await claim())].map(({ job }) => job.type)
  assert.deepEqual(types.toSorted(), ['greet', 'greet-again'])
  assert.ok(systemClock.nowMs() >= runAtMs)
})

test('a job that comes between an empty claim and the look is claimed at once', async (t) => {
  const { claim, insert, atNextLook } = await watched(t)
  const timer = t.mock.method(globalThis, 'setTimeout')
  // Nobody tells of it.
  atNextLook(insert)
  assert.equal((await claim()).length, 1)
  const pauses = timer.mock.calls.map(({ arguments: [, ms] }) => Number(ms)).filter((ms) => ms > 1 && ms <= 15)
  assert.deepEqual(pauses, [])
})
