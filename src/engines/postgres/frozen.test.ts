import assert from 'node:assert/strict'
import { before, describe, type TestContext, test } from 'node:test'
import { newJob } from '../../../test/fixtures/new-job.ts'
import { openWire } from '../../../test/fixtures/wire.ts'
import { type PostgresServer, postgresServer, query, schemaUrl } from '../../../test/servers/postgres.ts'
import type { Engine } from '../../engine/engine.ts'
import { openEngine } from '../../engine/open.ts'
import { systemClock } from '../../time/clock.ts'
import { migrate } from './module.ts'

const never = new AbortController().signal
const settings = { clock: systemClock, migrate: false }
/** The server gives up a statement after 7.2 s, a transaction that stands still after 3, an answer that is not taken after 9. */
const TIMEOUT = '&timeout=9000'
let server: PostgresServer

before(async () => {
  server = await postgresServer()
})

async function freshUrl(): Promise<{ readonly url: string; readonly schema: string }> {
  const fresh = schemaUrl(server)
  await migrate(fresh.url, settings)
  return fresh
}

async function opened(test: TestContext, url: string): Promise<Engine> {
  const engine = await openEngine(url, settings)
  test.after(() => engine.close())
  return engine
}

describe('locks of those who are frozen', () => {
  test('a process that is cut off in the middle of a transaction holds its locks for seconds only', async (test) => {
    const { url } = await freshUrl()
    const wire = await openWire(url)
    test.after(() => wire.close())
    const cutOff = await opened(test, `${wire.url}&listen=false${TIMEOUT}`)
    const other = await opened(test, `${url}${TIMEOUT}`)
    const sent = Promise.withResolvers<void>()
    wire.onSent((text) => {
      if (!text.includes('INSERT INTO') || !text.includes('millrace_latest')) return
      wire.freeze()
      sent.resolve()
    })
    const lost = cutOff.enqueue([newJob({ latest: { key: 'shared', seq: null } })])
    const rejected = assert.rejects(lost)
    await sent.promise
    const [receipt] = await other.enqueue([newJob({ latest: { key: 'shared', seq: null } })])
    assert.equal(receipt?.status, 'enqueued')
    await rejected
  })

  test('a transaction that the server ended because its process stood still is repeated', async (test) => {
    const { url, schema } = await freshUrl()
    const wire = await openWire(url)
    test.after(() => wire.close())
    const engine = await opened(test, `${wire.url}&listen=false&timeout=1500`)
    let stalls = 0
    wire.onSent((text) => {
      if (stalls > 0 || !text.includes('INSERT INTO') || !text.includes('millrace_latest')) return
      stalls += 1
      // As a handler that computes does: nothing of this process runs meanwhile.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_200)
    })
    const [receipt] = await engine.enqueue([newJob({ latest: { key: 'slow', seq: null } })])
    assert.deepEqual([receipt?.status, stalls], ['enqueued', 1])
    const rows = await query(server.url, `select 1 from ${schema}.jobs`)
    assert.equal(rows.length, 1)
  })

  test('jobs whose claim nobody takes off the wire come back', { skip: process.platform !== 'linux' }, async (test) => {
    const { url } = await freshUrl()
    const wire = await openWire(url)
    test.after(() => wire.close())
    const frozen = await opened(test, `${wire.url}&listen=false${TIMEOUT}`)
    const other = await opened(test, url)
    const payload = JSON.stringify('x'.repeat(1_000_000))
    await other.enqueue(Array.from({ length: 30 }, () => newJob({ type: 'big', payload })))
    const types = [{ type: 'big', leaseMs: 1_000 }]
    const unread = await frozen.consume({ types, worker: 'frozen' })
    wire.onSent((text) => {
      if (text.includes('UPDATE ONLY')) wire.stopReading()
    })
    const lost = assert.rejects(unread.claim({ max: 30, waitMs: 0, signal: never }), { code: 'ERR_STORAGE_BUSY' })
    const consumer = await other.consume({ types, worker: 'other' })
    await lost
    let taken = 0
    for (const untilMs = systemClock.monotonicMs() + 60_000; taken < 30; ) {
      taken += (await consumer.claim({ max: 30, waitMs: 0, signal: never })).length
      assert.ok(systemClock.monotonicMs() < untilMs, `${taken} of 30 jobs came back`)
      await systemClock.sleep(100)
    }
  })
})
