import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Events } from '../../src/events.ts'
import { attachMetrics } from '../../src/observe/index.ts'
import { sampleValue } from '../../test/fixtures/exposition.ts'
import { jobTables } from '../../test/fixtures/job-tables.ts'
import { jobTableMetrics, openReaperMetrics } from './metrics.ts'
import { Reaper } from './reaper.ts'
import type { ReaperMetrics } from './reaper-report.ts'

// E54 E55 E56 X184 X190
test('the reaper of job tables reports into the same scrape', async () => {
  const tables = jobTableMetrics()
  const reaper: ReaperMetrics = tables
  const engine = { name: 'none', counts: async () => ({}) }
  const metrics = await attachMetrics({ events: new Events(), engine }, { instruments: [tables.instrument] })
  reaper.count('reaper.requeues', { table: 'jobs', stage: 'clip' })
  reaper.count('reaper.requeues', { table: 'jobs', stage: 'clip' })
  reaper.count('reaper.failures', { table: 'asr_jobs', stage: 'unknown' })
  reaper.measure('reaper.scan_duration_ms', 20, { table: 'jobs', stage: 'all' })
  reaper.measure('reaper.queue_age_ms', 5_000, { table: 'jobs' })
  reaper.measure('reaper.queue_age_ms', 4_000, { table: 'jobs' })
  const text = await metrics.collectMetrics()
  assert.equal(sampleValue(text, 'reaper_requeues_total', { table: 'jobs', stage: 'clip' }), 2)
  assert.equal(sampleValue(text, 'reaper_failures_total', { table: 'asr_jobs', stage: 'unknown' }), 1)
  assert.equal(sampleValue(text, 'reaper_scan_duration_ms_sum', { table: 'jobs', stage: 'all' }), 20)
  assert.equal(sampleValue(text, 'reaper_queue_age_seconds', { table: 'jobs' }), 4)
})

// E54 E55 E56
test('a reaper without a mill has a scrape of its own, whose counters start at 0 for every stage that runs', async (t) => {
  const tables = await jobTables(t)
  const lease = { status: 'processing', lease_expires_at: new Date(Date.now() + 3_600_000) }
  await tables.insert('jobs', { id: 'a', stage: 'clip', ...lease })
  const metrics = await openReaperMetrics()
  const reaper = new Reaper(tables.pool, { metrics })
  await reaper.runOnce()
  const before = await metrics.collectMetrics()
  for (const tags of [
    { table: 'jobs', stage: 'clip' },
    { table: 'jobs', stage: 'unknown' },
    { table: 'asr_jobs', stage: 'unknown' },
  ]) {
    for (const name of ['reaper_requeues_total', 'reaper_failures_total'])
      assert.equal(sampleValue(before, name, tags), 0)
  }
  await tables.pool.query(`update jobs set lease_expires_at = now() - interval '1 minute', attempt_count = 3`)
  await reaper.runOnce()
  const after = await metrics.collectMetrics()
  assert.equal(sampleValue(after, 'reaper_failures_total', { table: 'jobs', stage: 'clip' }), 1)
  assert.equal(sampleValue(after, 'reaper_scan_duration_ms_count', { table: 'asr_jobs', stage: 'all' }), 2)
  assert.doesNotMatch(after, /millrace_/)
})
