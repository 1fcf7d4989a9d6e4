import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newJob } from '../../../test/fixtures/new-job.ts'
import { dropSchema, postgresServer, query, schemaUrl } from '../../../test/servers/postgres.ts'
import { openEngine } from '../../engine/open.ts'
import { systemClock } from '../../time/clock.ts'
import { Cursors } from './cursors.ts'
import { migrate } from './module.ts'
import type { JobRow } from './rows.ts'

const settings = { clock: systemClock, migrate: false }

const row = (runMs: number, type = 'greet'): JobRow => ({
  id: 'a',
  type,
  payload: null,
  payload_version: 1,
  priority: 5,
  attempt_count: 1,
  max_attempts: 3,
  created_ms: 0,
  run_ms: runMs,
  arrival: 1,
  idempotency_key: null,
  latest_key: null,
  tenant: null,
  options: null,
  after: null,
  expires_ms: null,
  place: '(0,1)',
})

test('a cursor starts a moment before the last job that was taken, and not at an invalid time', () => {
  const cursors = new Cursors()
  cursors.measure(false)()
  cursors.advance([...Array.from({ length: 600 }, () => row(1_700_000_000_000)), row(1_700_000_000_000, 'other')], {
    max: 601,
    resets: 0,
  })
  assert.deepEqual(cursors.of('greet'), { priority: 5, since: '2023-11-14T22:13:19.900Z' })
  for (const none of [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY, -8.64e15, 8.64e15]) {
    cursors.advance([row(none)], { max: 1, resets: 0 })
    assert.equal(cursors.of('greet'), null)
  }
  assert.notEqual(cursors.of('other'), null)
})

test('a claim that was under way when the cursors were reset does not set one', () => {
  const cursors = new Cursors()
  cursors.measure(false)()
  const { resets } = cursors
  const rows = Array.from({ length: 600 }, () => row(1_700_000_000_000))
  cursors.reset()
  cursors.advance(rows, { max: 600, resets })
  assert.equal(cursors.of('greet'), null)
  cursors.advance(rows, { max: 600, resets: cursors.resets })
  assert.notEqual(cursors.of('greet'), null)
})

test('a consumer that takes all that is due has no cursor, however many jobs it took', () => {
  const cursors = new Cursors()
  cursors.measure(false)()
  const rows = Array.from({ length: 600 }, () => row(1_700_000_000_000))
  cursors.advance(rows, { max: 601, resets: 0 })
  cursors.advance(rows.slice(0, 1), { max: 1, resets: 0 })
  assert.equal(cursors.of('greet'), null)
})

test('a consumer that waits finds a job that was stored before those claimed last, though nobody told it', async (t) => {
  const server = await postgresServer()
  const { url, schema } = schemaUrl(server)
  await migrate(url, settings)
  // Neither a poll nor a notification comes.
  const engine = await openEngine(`${url}&poll=600000&listen=false`, settings)
  t.after(async () => {
    await engine.close()
    await dropSchema(server.url, schema)
  })
  await engine.enqueue(Array.from({ length: 600 }, () => newJob({ type: 'greet' })))
  const consumer = await engine.consume({ types: [{ type: 'greet', leaseMs: 60_000 }], worker: 'w' })
  const claim = (max: number, waitMs: number) => consumer.claim({ max, waitMs, signal: new AbortController().signal })
  for (let left = 600; left > 0; ) left -= (await claim(200, 0)).length
  await query(
    server.url,
    `insert into ${schema}.jobs (type, payload, run_at) values ('greet', '{}', now() - interval '1 hour')`,
  )
  const askedMs = systemClock.monotonicMs()
  assert.equal((await claim(1, 20_000)).length, 1)
  const waitedMs = systemClock.monotonicMs() - askedMs
  assert.ok(waitedMs < 10_000, `it came after ${waitedMs} ms, when the claim looked for the last time`)
})
