import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PgBoss } from 'pg-boss'
import { jobTables } from '../../test/fixtures/job-tables.ts'
import { postgresServer } from '../../test/servers/postgres.ts'
import { openJobTables } from './job-tables.ts'
import { Reaper } from './reaper.ts'
import { readTableSettings } from './settings.ts'

// E41 X189
test('pg-boss as the dispatcher: a requeued row runs again, and once however often it is republished', async (t) => {
  const tables = await jobTables(t)
  const settings = readTableSettings({ QUEUE_RETRY_BACKOFF_MS_BASE: '0' })
  const { claimJob, finishJob } = openJobTables(tables.pool, { settings })
  const schema = `boss_${tables.schema}`
  const boss = new PgBoss({ connectionString: (await postgresServer()).url, schema })
  boss.on('error', () => {})
  await boss.start()
  try {
    await boss.createQueue('asr')
    const answers: string[] = []
    const bothHandled = Promise.withResolvers<void>()
    await boss.work<{ id: string }>('asr', { pollingIntervalSeconds: 0.5 }, async (jobs) => {
      for (const { data } of jobs) {
        const claimed = await claimJob(data.id, 'worker-2', 300, { table: 'asr_jobs' })
        answers.push(claimed.ok ? `start ${claimed.value.attempt}` : String(claimed.code))
        if (answers.length === 2) bothHandled.resolve()
      }
    })
    await tables.expired('asr_jobs', '7')
    const republish = async ({ id }: { id: string }): Promise<void> => {
      // Twice, as when pg-boss still has the job of the worker that died.
      await boss.send('asr', { id })
      await boss.send('asr', { id })
    }
    assert.deepEqual((await new Reaper(tables.pool, { settings, republish }).runOnce()).requeuedIds, ['7'])
    await bothHandled.promise
    assert.deepEqual(answers.toSorted(), ['not_claimable', 'start 2'])
    const finished = await finishJob('7', true, {}, { table: 'asr_jobs', workerId: 'worker-2', attempt: 2 })
    assert.equal(finished.ok, true)
  } finally {
    await boss.stop({ graceful: false })
    await tables.pool.query(`drop schema if exists ${schema} cascade`)
  }
})
