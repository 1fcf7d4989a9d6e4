/** The worker framework on Redis, whole: started by its one command, with work, a failure, a dead letter and a lost worker. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { open } from 'millrace'
import { JobDispatcher, type JobType } from 'millrace/workloads/framework'
import { runCli } from '../cli/in-process.ts'
import { jsonLines, temporaryFolder, until } from '../cli/run.ts'
import { status, webhookReceiver } from '../fixtures/webhook-receiver.ts'
import { prefixUrl, redisServer } from '../servers/redis.ts'
import { PresetProcess, writeConfig } from './preset-process.ts'

const WORKERS = join(import.meta.dirname, 'framework-workers.ts')
/** For what never comes. */
const PATIENCE = { timeout: '2m' } as const

// A145 A146 A147 A148 A152 A153 A155 A168
test('millrace start --preset framework is the framework with its health, metrics, alerts and schedules', async (t) => {
  const { url: engine } = prefixUrl(await redisServer())
  const folder = await temporaryFolder(t)
  const receiver = await webhookReceiver()
  t.after(() => receiver.close())
  const database = `sqlite:${join(folder, 'tables.db')}`
  const config = await writeConfig(folder, { database, webhooks: { allow: [receiver.origin] } })
  const args = [WORKERS, '--preset', 'framework', '--engine', engine, '--config', config, '--reap', '500ms']

  const mill = await open(engine)
  t.after(() => mill.close())
  const types: JobType[] = ['embedding-batch', 'session-cleanup', 'data-deletion', 'webhook-dispatch']
  const dispatcher = new JobDispatcher(mill, types)

  // A worker that will be lost holds this one.
  const lost = new PresetProcess(t, [...args, '--no-http'])
  await lost.started()
  const deletion = await dispatcher.dispatch({ type: 'data-deletion', data: { user: 7 } })
  await lost.line(({ msg, job_id }) => msg === 'Job started' && job_id === deletion.id)

  const workers = new PresetProcess(t, args)
  await workers.started()
  const health = () => workers.answer('/worker-health')
  await until(async () => Object((await health()).details).activeWorkers === 2)
  assert.equal(await workers.metric('ruvbot_worker_queue_depth', { type: 'data-deletion', state: 'active' }), 1)
  assert.equal(await workers.metric('ruvbot_worker_jobs_active', { type: 'data-deletion' }), 0)
  await lost.lose()

  // A dead letter of a critical type, which the rules find at their next look.
  receiver.answer(status(404, 'gone'))
  const added = await runCli([
    'webhooks',
    'add',
    `${receiver.origin}/hooks`,
    '--allow',
    receiver.origin,
    '--engine',
    database,
    '--json',
  ])
  const [endpoint] = jsonLines(added.out)
  const tenant = { orgId: 'acme' }
  const data = { webhookId: endpoint?.id, payload: { order: 7 } }
  const webhook = await dispatcher.dispatch({ type: 'webhook-dispatch', data, tenant })
  const title = 'Critical job moved to dead letter: webhook-dispatch'
  const alert = await workers.line((line) => line.title === title)
  assert.deepEqual(
    [alert.severity, alert.metadata],
    ['high', { jobType: 'webhook-dispatch', jobId: webhook.id, tenant }],
  )
  assert.match(String(alert.message), new RegExp(`job ${webhook.id} is a dead letter after 1 of 10 attempts: .*404`))
  assert.equal(await workers.metric('ruvbot_worker_jobs_total', { type: 'webhook-dispatch', status: 'dead' }), 1)
  const deliveries = { outcome: 'failed' }
  assert.equal(await workers.metric('ruvbot_worker_webhook_deliveries_total', deliveries), 1)

  // Work, and a failure with its retry.
  const items = [{ sourceId: 'backup', text: 'Backups run at two.' }]
  const batch = await dispatcher.dispatch({ type: 'embedding-batch', data: { namespace: 'documents', items } })
  assert.partialDeepStrictEqual(await mill.result(batch, PATIENCE), { total: 1, succeeded: 1, failed: 0 })
  const options = { backoff: { type: 'fixed', delay: 100 } } as const
  const cleanup = await dispatcher.dispatch({ type: 'session-cleanup', data: { maxAge: 1 }, options })
  assert.equal(await mill.result(cleanup, PATIENCE), 'nothing older than 1 ms')
  await workers.line(({ msg }) => msg === 'Job retried in 100 ms (attempt 1 of 3)')
  assert.equal(await workers.metric('ruvbot_worker_jobs_retried_total', { type: 'session-cleanup' }), 1)
  assert.equal(await workers.metric('ruvbot_worker_job_duration_seconds_count', { type: 'embedding-batch' }), 1)

  // The job of the lost worker is done by the other.
  assert.equal(await mill.result(deletion, PATIENCE), 'deleted at attempt 2')
  const expired = { type: 'data-deletion', outcome: 'retry' }
  assert.equal(await workers.metric('ruvbot_worker_leases_expired_total', expired), 1)

  await until(async () => Object((await health()).details).deadLetterCount === 1)
  const checked = await health()
  const { redis, deadLetters, workers: running, queues } = Object(checked.checks)
  assert.deepEqual(
    [redis.status, deadLetters.status, running.status, queues.status, checked.status],
    ['healthy', 'degraded', 'healthy', 'healthy', 'degraded'],
  )
  assert.equal(Object(checked.details).oldestWaitingJob, null)

  // Types without a worker are named and not scheduled; those with one are.
  const { types: missing } = await workers.line(({ msg }) => String(msg).startsWith('These types have no worker here'))
  assert.deepEqual([missing].flat().includes('quota-check'), true)
  const schedules = await mill.schedules.list()
  assert.deepEqual(schedules.map(({ name, cron }) => [name, cron]).toSorted(), [
    ['index-optimization', '0 0 3 * * *'],
    ['memory-cleanup', '0 30 3 * * *'],
    ['memory-importance-decay', '0 0 */6 * * *'],
    ['session-cleanup', '0 */15 * * * *'],
  ])

  await workers.line(({ msg }) => String(msg).startsWith('Alert CriticalDeadLetters: '))
  const { alerts } = await workers.answer('/api/v1/alerts')
  const critical = [alerts].flat().find((one) => Object(one).rule === 'CriticalDeadLetters')
  assert.partialDeepStrictEqual(critical, {
    status: 'firing',
    severity: 'error',
    labels: { type: 'webhook-dispatch' },
  })
  await workers.stop()
})
