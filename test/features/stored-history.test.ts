import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import type { Engine } from '../../src/engine/engine.ts'
import { openEngine } from '../../src/engine/open.ts'
import type { Outcome } from '../../src/engine/outcome.ts'
import { migrate } from '../../src/engines/postgres/module.ts'
import { HISTORY_MAX } from '../../src/job/job.ts'
import { systemClock } from '../../src/time/clock.ts'
import { newJob } from '../fixtures/new-job.ts'
import { postgresServer, query, schemaUrl } from '../servers/postgres.ts'
import { keysOf, prefixUrl, redisServer, withRedis } from '../servers/redis.ts'

const error = { name: 'Error', code: null, message: 'again', stack: null }
const retry: Outcome = { kind: 'retry', delayMs: 0, error }
const release: Outcome = { kind: 'release', delayMs: 0, reason: 'test' }

async function opened(t: TestContext, url: string): Promise<Engine> {
  const engine = await openEngine(url, { clock: systemClock, migrate: true })
  t.after(() => engine.close())
  return engine
}

/** One job, started so often that its history would be twice as long as it may be. */
async function startOften(engine: Engine): Promise<void> {
  await engine.enqueue([newJob({ type: 'often', attempts: 10_000 }), newJob({ type: 'seldom' })])
  const consumer = await engine.consume({ types: [{ type: 'often', leaseMs: 60_000 }], worker: 'w' })
  const { signal } = new AbortController()
  for (let start = 0; start < HISTORY_MAX; start += 1) {
    const [lease] = await consumer.claim({ max: 1, waitMs: 10_000, signal })
    assert.ok(lease)
    assert.deepEqual(await consumer.settle([{ lease, outcome: start % 2 === 0 ? retry : release }]), [])
  }
}

// What `history` shows is cut in any case: this is about what lies in the store.
const isBounded = (lines: number): void => assert.ok(lines <= HISTORY_MAX && lines > HISTORY_MAX / 2, `${lines} lines`)

test('SQLite stores no more lines of one job than the history shows', { timeout: 240_000 }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-history-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'jobs.db')
  await startOften(await opened(t, `sqlite:${file}`))
  const database = new DatabaseSync(file)
  t.after(() => database.close())
  isBounded(Number(database.prepare('SELECT count(*) AS lines FROM job_events').get()?.lines))
})

test('Postgres stores no more lines of one job than the history shows', { timeout: 240_000 }, async (t) => {
  const server = await postgresServer()
  const { url, schema } = schemaUrl(server)
  await migrate(url, { clock: systemClock, migrate: false })
  const engine = await opened(t, url)
  await startOften(engine)
  const [row] = await query<{ lines: number }>(server.url, `select count(*)::int as lines from ${schema}.job_events`)
  isBounded(row?.lines ?? 0)
})

test('Redis stores no more lines of one job than the history shows', { timeout: 240_000 }, async (t) => {
  const server = await redisServer()
  const { url, prefix } = prefixUrl(server)
  await startOften(await opened(t, url))
  const [log = ''] = (await keysOf(server.url, prefix)).filter((key) => key.endsWith(':logs'))
  isBounded(await withRedis(server.url, (redis) => redis.llen(log)))
})
