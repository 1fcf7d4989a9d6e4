import assert from 'node:assert/strict'
import { test } from 'node:test'
import { drain, openForTest } from '../../src/testing/index.ts'
import { WorkerMetricsExporter } from './index.ts'
import { Told } from './rig.ts'

// A145 A146 A147 A148 A149 A150
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
  assert.match(before, /# TYPE ruvbot_worker_jobs_active gauge/)
  assert.ok(before.includes(`${depth} 1`), before)
  await drain(mill, [definition])
  const after = await exporter.collectMetrics()
  assert.ok(after.includes(`${depth} 0`))
  assert.match(after, /ruvbot_worker_jobs_total\{type="slack-sync",status="completed",engine="memory"\} 1/)
  assert.match(after, /ruvbot_worker_job_duration_seconds_bucket\{.*le="0\.1".*\} 1/)
  await exporter.detach()
  await mill.enqueue(definition, null)
  await drain(mill, [definition])
  assert.match(await exporter.collectMetrics(), /status="completed",engine="memory"\} 1/)
})

test('an invalid prefix is told by whatever is awaited', async () => {
  await using t = await openForTest()
  const exporter = new WorkerMetricsExporter(t.mill, { prefix: 'my-app' })
  await assert.rejects(exporter.ready, { code: 'ERR_OPTION_INVALID' })
  await assert.rejects(exporter.collectMetrics(), { code: 'ERR_OPTION_INVALID' })
})
