/**
 * The shipped rules about job tables, from scrapes of a process that works on Postgres and reaps rows there. A scraped
 * state stands for as long as a rule asks.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { open } from '../../src/client/mill.ts'
import { attachMetrics } from '../../src/observe/index.ts'
import { jobTableMetrics, openJobTables, Reaper } from '../../workloads/job-tables/index.ts'
import { jobTables, secondsFromNow } from '../fixtures/job-tables.ts'
import { plain } from './jobs.ts'
import { skip } from './promtool.ts'
import { MILLRACE_RULES, Recording } from './recording.ts'
import { STORES } from './stores.ts'

test('rows that wait for an hour and rows whose lease expired for the last time are told of, and then no more', {
  skip,
}, async (t) => {
  const tables = await jobTables(t)
  await using mill = await open((await STORES.postgres?.(t, [])) ?? '')
  const metrics = jobTableMetrics()
  const { collectMetrics } = await attachMetrics(mill, { instruments: [metrics.instrument] })
  const reaper = new Reaper(tables.pool, { metrics })
  await mill.work([plain], { reap: '20ms' })
  const recording = new Recording({ rules: [MILLRACE_RULES], everySeconds: 60 })
  /** Now, and every nine minutes: the engine's own reaper, which another rule is about, has run in between. */
  const scrape = async (minutes: number): Promise<void> => {
    for (let left = minutes; left > 0; left -= 9) {
      await mill.events.next('reaper.pass')
      await reaper.runOnce()
      recording.add({ app: await collectMetrics() }, Date.now(), Math.min(9, left) * 60)
    }
  }

  await tables.insert('jobs', { id: 'new', stage: 'clip' })
  await tables.expired('jobs', 'again', { stage: 'clip' })
  await scrape(5)
  recording.expect({})

  await tables.insert('asr_jobs', { id: 1, stage: 'asr', next_earliest_run_at: secondsFromNow(-3_601) })
  await scrape(1)
  recording.expect({ ReaperQueueAge: [{ table: 'asr_jobs' }] })
  const claimed = await openJobTables(tables.pool).claimJob('1', 'worker-2', undefined, { table: 'asr_jobs' })
  assert.ok(claimed.ok)
  await scrape(1)
  recording.expect({})

  // The first of its stage: the counter has never been 0 in a scrape.
  await tables.expired('jobs', 'lost', { stage: 'render', attempt_count: 3 })
  await scrape(1)
  recording.expect({ ReaperFailures: [{ table: 'jobs', stage: 'render' }] })
  await tables.expired('jobs', 'lost too', { stage: 'render', attempt_count: 3 })
  await scrape(59)
  recording.expect({ ReaperFailures: [{ table: 'jobs', stage: 'render' }] })
  await scrape(3)
  recording.expect({})
  await recording.judge()
})
