/** Rows of other programs on SQLite that are queued and that no claim ever finds. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { explainJob, open } from 'millrace'
import { createAdmin } from 'millrace/http'
import { systemClock } from '../../src/time/clock.ts'
import { millrace, temporaryFolder } from './run.ts'

function insert(handle: DatabaseSync, id: string, columns: Record<string, string | number> = {}): void {
  const now = new Date(systemClock.nowMs() - 1_000).toISOString()
  const row = { id, type: 'greet', scheduled_at: now, payload: '{}', created_at: now, updated_at: now, ...columns }
  const names = Object.keys(row)
  const marks = names.map(() => '?').join(', ')
  handle.prepare(`INSERT INTO job_queue (${names.join(', ')}) VALUES (${marks})`).run(...Object.values(row))
}

test('a row that no claim finds is named by the doctor and by explain, and can be looked at', async (t) => {
  const file = join(await temporaryFolder(t), 'jobs.db')
  const url = `sqlite:${file}`
  const mill = await open(url)
  t.after(() => mill.close())
  const handle = new DatabaseSync(file)
  t.after(() => handle.close())
  const nextYear = new Date(systemClock.nowMs() + 365 * 86_400_000).getUTCFullYear()
  const unreadable = { basic: `${nextYear - 1}1116T120000Z`, word: 'tomorrow', rfc: 'Mon, 16 Nov 2026 12:00:00 GMT' }
  for (const [id, scheduled_at] of Object.entries(unreadable)) insert(handle, id, { scheduled_at })
  insert(handle, 'half', { priority: 2.5 })
  insert(handle, 'born', { created_at: 'yesterday', updated_at: 'yesterday' })
  insert(handle, 'fine')
  const findings = (await mill.engine.diagnose?.()) ?? []
  const named = findings.filter(({ subject }) => subject === 'unclaimable jobs').map(({ detail }) => detail)
  assert.deepEqual(named.toSorted(), [
    `job basic never runs: its scheduled_at is '${unreadable.basic}', which is not an ISO 8601 time`,
    'job half never runs: its priority is 2.5, which is not a whole number',
    `job rfc never runs: its scheduled_at is '${unreadable.rfc}', which is not an ISO 8601 time`,
    `job word never runs: its scheduled_at is 'tomorrow', which is not an ISO 8601 time`,
  ])
  for (const id of [...Object.keys(unreadable), 'half']) {
    const { because, text } = await explainJob(mill, id)
    assert.equal(because, 'unreadable')
    assert.match(text, id === 'half' ? /^Its priority is 2\.5/ : /^Its due time cannot be read/)
  }
  assert.equal((await mill.job('born'))?.state, 'queued')
  assert.notEqual((await explainJob(mill, 'fine')).because, 'unreadable')
  for (const id of [...Object.keys(unreadable), 'half', 'born']) {
    const shown = await millrace(['job', id, '--engine', url])
    assert.deepEqual([shown.code, shown.err], [0, ''], shown.err)
    assert.equal((await millrace(['explain', id, '--engine', url])).code, 0)
  }
  assert.match((await millrace(['jobs', '--engine', url])).out, /never due: its time cannot be read/)
  const admin = createAdmin(mill, { jobs: [] })
  t.after(() => admin.close())
  const { url: address } = await admin.listen({ port: 0 })
  for (const path of ['jobs', 'jobs/word', 'jobs/born'])
    assert.equal((await fetch(`${address}/api/v1/${path}`)).status, 200, path)
})
