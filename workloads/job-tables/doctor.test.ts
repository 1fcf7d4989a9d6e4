import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Finding } from '../../src/engine/engine.ts'
import { existingTables, jobTables, secondsFromNow, type TableFixture } from '../../test/fixtures/job-tables.ts'
import { TableAccess } from './access.ts'
import { connectTo, REAPER_SESSION } from './connect.ts'
import { examineTables } from './doctor.ts'
import { migrateTables } from './migration.ts'
import { Reaper } from './reaper.ts'

function examine({ pool }: TableFixture, tables: readonly string[] = ['jobs', 'asr_jobs']) {
  return examineTables(new TableAccess(pool, { tables }))
}

function found(findings: readonly Finding[], subject: string): readonly (readonly [string, string, string])[] {
  return findings
    .filter((finding) => finding.subject === subject)
    .map(({ severity, detail, advice }) => [severity, detail, advice ?? ''])
}

function assertFound(findings: readonly Finding[], subject: string, severity: string, ...patterns: readonly RegExp[]) {
  const all = found(findings, subject)
  const text = JSON.stringify(all)
  assert.ok(
    all.some(([word]) => word === severity),
    `${subject}: ${text}`,
  )
  for (const pattern of patterns) assert.match(text, pattern)
}

describe('the doctor of job tables', () => {
  test('rows that nobody reaps, and that no reaper runs', async (t) => {
    const tables = await jobTables(t)
    await tables.expired('jobs', 'a', { lease_expires_at: secondsFromNow(-7_200) })
    await tables.expired('jobs', 'b', { next_earliest_run_at: secondsFromNow(3_600) })
    await tables.expired('asr_jobs', '1', { lease_expires_at: secondsFromNow(-10) })
    const findings = await examine(tables)
    const start = /millrace reap --tables jobs --every 60s/
    assertFound(findings, 'jobs: stuck rows', 'error', /2 rows .*2 h ago.*holds back 1 row/, start)
    assertFound(findings, 'asr_jobs: stuck rows', 'ok')
    assertFound(findings, 'reaper', 'error', /rows wait for one; none is on record/)
    await new Reaper(tables.pool).runOnce()
    const after = await examine(tables)
    assertFound(after, 'reaper', 'warning', /no reaper is connected now; one acted \d+ s ago.*from cron/)
  })

  test('attempts that are used up, rows without a lease, rows that wait for long', async (t) => {
    const tables = await jobTables(t)
    const spent = { attempt_count: 3 }
    await tables.insert('jobs', { id: 'a', status: 'failed', fail_code: 'timeout', ...spent })
    await tables.insert('jobs', { id: 'b', status: 'failed', fail_code: 'E_CODEC', ...spent })
    await tables.insert('jobs', { id: 'c', status: 'failed', fail_code: 'E_CODEC', attempt_count: 1 })
    await tables.insert('jobs', { id: 'd', next_earliest_run_at: secondsFromNow(-7_200), ...spent })
    await tables.insert('asr_jobs', { id: 1, status: 'processing', last_heartbeat_at: new Date() })
    const findings = await examine(tables)
    assertFound(findings, 'jobs: attempts', 'warning', /2 failed rows.*1 of them because workers died or hung/)
    assertFound(findings, 'jobs: attempts', 'warning', /1 queued row .*started once more/, /attempt_count = 0/)
    assertFound(findings, 'asr_jobs: attempts', 'ok')
    assertFound(findings, 'asr_jobs: rows without a lease', 'warning', /1 row .*without claimJob/, /DEFAULT_LEASE_SEC/)
    assertFound(findings, 'jobs: due rows', 'warning', /1 row due, the oldest for 2 h/)
  })

  test('what the schema lacks, and the command that adds it', async (t) => {
    const tables = await existingTables(t, 'create table jobs (id text primary key, status text)')
    const before = await examine(tables)
    assertFound(before, 'jobs: columns', 'error', /missing: locked_by, lease_expires_at, .*started_at/, /--dry-run/)
    assertFound(before, 'asr_jobs: columns', 'error', /does not exist/, /migrate --tables asr_jobs --new/)
    assertFound(before, 'job_events', 'error', /nothing can be reaped/)
    await migrateTables(tables.pool, { create: true })
    await tables.pool.query('drop index idx_jobs_status_lease; drop index idx_job_events_reaper')
    const after = await examine(tables)
    assertFound(after, 'jobs: indexes', 'warning', /idx_jobs_status_lease/, /CONCURRENTLY/)
    assertFound(after, 'job_events', 'warning', /idx_job_events_reaper/)
    assert.equal(after.filter(({ severity }) => severity === 'error').length, 0)
    const misfit = await existingTables(t, 'create table jobs (id text, status text, lease_expires_at timestamp)')
    assertFound(await examine(misfit, ['jobs']), 'jobs: columns', 'error', /is timestamp without time zone/)
  })

  test('an index that was left unfinished counts as missing', async (t) => {
    const tables = await jobTables(t)
    await tables.pool.query(
      `update pg_index set indisvalid = false where indexrelid = 'idx_jobs_status_lease'::regclass`,
    )
    assertFound(await examine(tables), 'jobs: indexes', 'warning', /missing or invalid/)
  })

  // The last one: the session of its reaper may be seen for a moment longer.
  test('finds nothing wrong with tables that are used as they should be, while a reaper is connected', async (t) => {
    const tables = await jobTables(t)
    await tables.insert('jobs', { id: 'a' })
    await tables.insert('jobs', { id: 'b', status: 'processing', lease_expires_at: secondsFromNow(60) })
    const reaper = await connectTo(tables.engineUrl, { name: REAPER_SESSION, staysConnected: true })
    t.after(() => reaper.close())
    await reaper.ping()
    const findings = await examine(tables)
    assert.deepEqual(
      findings.filter(({ severity }) => severity !== 'ok'),
      [],
    )
    assert.equal(findings.length, 13)
    assertFound(findings, 'reaper', 'ok', /1 reaper connected; none is on record/)
  })
})
