import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createAdmin } from '../../../src/http/index.ts'
import { open } from '../../../src/index.ts'
import { TestClock } from '../../../src/testing/test-clock.ts'
import { jobTables, secondsFromNow } from '../../../test/fixtures/job-tables.ts'
import { openJobTables } from '../job-tables.ts'
import { tableRoutes } from './routes.ts'

const TOKENS = { viewer: 'v'.repeat(40), operator: 'o'.repeat(40) } as const
const HOST = '127.0.0.1:9999'

async function scene(t: TestContext) {
  const tables = await jobTables(t)
  const mill = await open('memory:')
  const clock = new TestClock()
  const tokens = (['viewer', 'operator'] as const).map((role) => ({ who: role, role, token: TOKENS[role] }))
  const admin = createAdmin(mill, { routes: tableRoutes(mill, tables.pool, { clock }), pages: ['tables'], tokens })
  t.after(async () => {
    await admin.close()
    await mill.close()
  })
  const call = async (role: keyof typeof TOKENS, path: string, body?: object) => {
    const headers = { host: HOST, authorization: `Bearer ${TOKENS[role]}`, 'content-type': 'application/json' }
    const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
    const response = await admin.fetch(new Request(`http://${HOST}/api/v1/job-tables${path}`, { headers, ...sent }))
    return { status: response.status, body: JSON.parse(await response.text()) }
  }
  return { tables, mill, call, clock }
}

const WHY = { reason: 'its machine is gone' }

test('an operator changes a stuck row only, with a reason, which the event and the audit keep', async (t) => {
  const { tables, mill, call } = await scene(t)
  await tables.expired('jobs', 'lost', { attempt_count: 2 })
  await tables.insert('jobs', { id: 'held', status: 'processing', lease_expires_at: secondsFromNow(60) })
  await tables.insert('jobs', { id: 'waits' })
  for (const [id, status, code] of [
    ['held', 409, 'ERR_STATE_TRANSITION'],
    ['waits', 409, 'ERR_STATE_TRANSITION'],
    ['absent', 404, 'ERR_RECORD_UNKNOWN'],
  ] as const) {
    for (const act of ['requeue', 'fail']) {
      const refused = await call('operator', `/jobs/rows/${id}/${act}`, WHY)
      assert.deepEqual([id, refused.status, refused.body.code], [id, status, code])
    }
  }
  assert.equal((await call('operator', '/other/rows/lost/fail', WHY)).status, 404)
  assert.equal((await call('operator', '/jobs/rows/lost/fail', {})).status, 400)
  assert.equal((await call('viewer', '/jobs/rows/lost/requeue', WHY)).status, 403)
  assert.equal((await tables.row('jobs', 'lost')).status, 'processing')
  assert.deepEqual(await tables.events(), [])

  assert.equal((await call('operator', '/jobs/rows/lost/requeue', WHY)).status, 200)
  const row = await tables.row('jobs', 'lost')
  assert.deepEqual([row.status, row.locked_by, row.lease_expires_at, row.attempt_count], ['queued', null, null, 2])
  const [event] = await tables.events('lost')
  assert.deepEqual(
    [event?.type, event?.table, event?.details],
    ['operator:requeued', 'jobs', { ...WHY, who: 'operator', locked_by: 'worker-1' }],
  )
  const { entries } = await auditOf(mill)
  assert.deepEqual(entries, [['row-requeue', 'jobs lost', 'operator', WHY.reason]])
  // Due at once, and its worker of before is fenced out.
  const { claimJob, finishJob } = openJobTables(tables.pool, { tables: ['jobs'] })
  assert.equal((await finishJob('lost', true, undefined, { workerId: 'worker-1' })).ok, false)
  assert.ok((await claimJob('lost', 'worker-2', 60)).ok)
  assert.equal((await call('operator', '/jobs/rows/lost/requeue', WHY)).status, 409)
})

async function auditOf(mill: Awaited<ReturnType<typeof open>>) {
  const page = await mill.engine.deadLetters?.audit({ limit: 10 })
  return { entries: (page ?? []).map(({ action, subject, who, reason }) => [action, subject, who, reason]) }
}

test('what a page shows is read again after a second, and at once after an act', async (t) => {
  const { tables, call, clock } = await scene(t)
  await tables.expired('jobs', 'lost', { attempt_count: 3, stage: 'clip' })
  const stuck = async (): Promise<number> => (await call('viewer', '')).body.tables[0].rows.stuck
  assert.equal(await stuck(), 1)
  await tables.expired('jobs', 'other')
  assert.equal(await stuck(), 1)
  await clock.advance('1s')
  assert.equal(await stuck(), 2)
  assert.equal((await call('operator', '/jobs/rows/lost/fail', WHY)).status, 200)
  assert.equal(await stuck(), 1)
  const { tables: shown, recent, findings, reapers } = (await call('viewer', '')).body
  assert.deepEqual(
    shown.map(({ table, isReady, stuckRows }: never) => [table, isReady, Object(stuckRows).length]),
    [
      ['jobs', true, 1],
      ['asr_jobs', true, 0],
    ],
  )
  assert.deepEqual([recent[0].type, recent[0].who, recent[0].reason], ['operator:failed', 'operator', WHY.reason])
  assert.ok(findings.some(({ subject }: { subject: string }) => subject === 'jobs: attempts'))
  assert.equal(reapers, 0)
})

test('a database that is gone is a 503 with the reason', async (t) => {
  const mill = await open('memory:')
  t.after(() => mill.close())
  let asked = 0
  const query = () => {
    asked += 1
    return Promise.reject(Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }))
  }
  const admin = createAdmin(mill, { routes: tableRoutes(mill, { query }), pages: ['tables'], peer: () => '127.0.0.1' })
  t.after(() => admin.close())
  for (const n of [1, 2]) {
    const url = `http://${HOST}/api/v1/job-tables`
    const response = await admin.fetch(new Request(url, { headers: { host: HOST } }))
    assert.deepEqual([response.status, asked], [503, n])
    assert.match(await response.text(), /no server answers there/)
  }
})
