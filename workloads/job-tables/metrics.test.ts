import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Events } from '../../src/events.ts'
import { attachMetrics } from '../../src/observe/index.ts'
import { sampleValue } from '../../test/fixtures/exposition.ts'
import { jobTableMetrics } from './metrics.ts'
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
  reaper.measure('reaper.scan_duration_ms', 20, { table: 'jobs' })
  reaper.measure('reaper.queue_age_ms', 5_000, { table: 'jobs' })
  reaper.measure('reaper.queue_age_ms', 4_000, { table: 'jobs' })
  const text = await metrics.collectMetrics()
  assert.equal(sampleValue(text, 'reaper_requeues_total', { table: 'jobs', stage: 'clip' }), 2)
  assert.equal(sampleValue(text, 'reaper_failures_total', { table: 'asr_jobs', stage: 'unknown' }), 1)
  assert.equal(sampleValue(text, 'reaper_scan_duration_ms_sum', { table: 'jobs' }), 20)
  assert.equal(sampleValue(text, 'reaper_queue_age_seconds', { table: 'jobs' }), 4)
})
