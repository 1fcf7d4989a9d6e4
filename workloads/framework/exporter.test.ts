import assert from 'node:assert/strict'
import { test } from 'node:test'
import { drain, openForTest } from '../../src/testing/index.ts'
import { WorkerMetricsExporter } from './index.ts'
import { Told } from './rig.ts'

// A145 A147 A148 A149 A150
test('the exporter has the metrics under the framework’s names, with depths of now', async () => {
  await using t = await openForTest()
  const { mill, clock } = t
  const exporter = new WorkerMetricsExporter(mill, { clock })
  await exporter.ready
  const { definition } = new Told(() => null)
  await mill.enqueue(definition, null)
  const depth = 'ruvbot_worker_queue_depth{type="slack-sync",state="waiting",engine="memory"}'
  const before = await exporter.collectMetrics()
  assert.match(before, /# HELP ruvbot_worker_jobs_total Total jobs processed/)
  assert.ok(before.includes(`${depth} 1`), before)
  await drain(mill, [definition])
  const after = await exporter.collectMetrics()
  assert.ok(after.includes(`${depth} 0`))
  assert.match(after, /ruvbot_worker_jobs_total\{type="slack-sync",status="completed",engine="memory"\} 1/)
  assert.match(after, /# HELP ruvbot_worker_job_duration_seconds Job processing duration\n# TYPE .* histogram/)
  const buckets = after.matchAll(
    /^ruvbot_worker_job_duration_seconds_bucket\{(?=.*type="slack-sync").*le="([^"]*)".*\} 1$/gm,
  )
  assert.deepEqual(
    [...buckets].map(([, le]) => le),
    ['0.1', '0.5', '1', '5', '10', '30', '60', '300', '+Inf'],
  )
  await exporter.detach()
  await mill.enqueue(definition, null)
  await drain(mill, [definition])
  assert.match(await exporter.collectMetrics(), /status="completed",engine="memory"\} 1/)
})

// A146
test('the exporter counts a job as active while it runs', async () => {
  await using t = await openForTest()
  const exporter = new WorkerMetricsExporter(t.mill, { clock: t.clock })
  await exporter.ready
  const gate = Promise.withResolvers<null>()
  const { definition } = new Told(() => gate.promise)
  const [started, settled] = [t.mill.events.next('job.started'), t.mill.events.next('job.settled')]
  await t.mill.work([definition])
  await t.mill.enqueue(definition, null)
  await started
  const active = 'ruvbot_worker_jobs_active{type="slack-sync",engine="memory"}'
  const during = await exporter.collectMetrics()
  assert.match(during, /# HELP ruvbot_worker_jobs_active Currently active jobs\n# TYPE ruvbot_worker_jobs_active gauge/)
  assert.ok(during.includes(`${active} 1\n`), during)
  gate.resolve(null)
  await settled
  assert.ok((await exporter.collectMetrics()).includes(`${active} 0\n`))
})

test('an invalid prefix is told by whatever is awaited', async () => {
  await using t = await openForTest()
  const exporter = new WorkerMetricsExporter(t.mill, { prefix: 'my-app' })
  await assert.rejects(exporter.ready, { code: 'ERR_OPTION_INVALID' })
  await assert.rejects(exporter.collectMetrics(), { code: 'ERR_OPTION_INVALID' })
})
