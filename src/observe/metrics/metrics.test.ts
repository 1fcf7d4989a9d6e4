import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { parseExposition, sampleValue } from '../../../test/fixtures/exposition.ts'
import { jobTableMetrics } from '../../../workloads/job-tables/metrics.ts'
import { Events } from '../../events.ts'
import { defineJob } from '../../job/definition.ts'
import { drain } from '../../testing/drain.ts'
import { openForTest, type TestMill } from '../../testing/open-for-test.ts'
import type { Metrics } from './instrument.ts'
import { attachMetrics } from './metrics.ts'
import { METRIC_NAMES } from './names.ts'

interface Stage extends AsyncDisposable {
  readonly t: TestMill
  readonly metrics: Metrics
  value(name: string, labels?: Readonly<Record<string, string>>): Promise<number | null>
}

/** With the prefix of the worker framework, which is part of its rows. */
async function stage(prefix = 'ruvbot_worker_'): Promise<Stage> {
  const t = await openForTest()
  const metrics = await attachMetrics(t.mill, { prefix, clock: t.clock })
  return {
    t,
    metrics,
    value: async (name, labels) => sampleValue(await metrics.collectMetrics(), prefix + name, labels),
    [Symbol.asyncDispose]: () => t.close(),
  }
}

const type = 'webhook-dispatch'
const good = defineJob({ type, run: () => 1 })
const flaky = defineJob({
  type,
  attempts: 3,
  backoff: { kind: 'fixed', delay: '10s' },
  run: ({ job }) => {
    if (job.attempt === 1) throw new Error('not yet')
  },
})
const hopeless = defineJob({
  type,
  attempts: 2,
  backoff: { kind: 'fixed', delay: '10s' },
  run: () => Promise.reject(new Error('never')),
})

// A142 A145 X069
test('attempts are counted as they start and end', async () => {
  await using s = await stage()
  await s.t.mill.enqueue(good, null)
  await drain(s.t.mill, [good])
  await s.t.mill.enqueue(flaky, null)
  await drain(s.t.mill, [flaky])
  assert.equal(await s.value('jobs_failed_total', { type }), 1)
  assert.equal(await s.value('jobs_retried_total', { type }), 1)
  await s.t.clock.advance('10s')
  await drain(s.t.mill, [flaky])
  await s.t.mill.enqueue(hopeless, null)
  await drain(s.t.mill, [hopeless])
  await s.t.clock.advance('10s')
  await drain(s.t.mill, [hopeless])
  // good once; flaky failed, then well; hopeless failed twice, the second time for good.
  assert.equal(await s.value('jobs_started_total', { type }), 5)
  assert.equal(await s.value('jobs_completed_total', { type }), 2)
  assert.equal(await s.value('jobs_failed_total', { type }), 3)
  assert.equal(await s.value('jobs_retried_total', { type }), 2)
  const families = parseExposition(await s.metrics.collectMetrics())
  const total = families.get('ruvbot_worker_jobs_total')
  assert.equal(total?.help, 'Total jobs processed')
  assert.equal(total?.type, 'counter')
  assert.deepEqual(
    total?.samples.map(({ labels, value }) => [labels, value]),
    [
      [{ type, status: 'started', engine: 'memory' }, 5],
      [{ type, status: 'completed', engine: 'memory' }, 2],
      [{ type, status: 'failed', engine: 'memory' }, 3],
      [{ type, status: 'retried', engine: 'memory' }, 2],
      [{ type, status: 'dead', engine: 'memory' }, 1],
    ],
  )
})

// A143
test('gauges say what a known queue holds', async () => {
  await using s = await stage()
  const other = defineJob({ type: 'other', run: () => 1 })
  await s.t.mill.enqueueMany(good, [1, 2, 3])
  await s.t.mill.enqueueMany(good, [4, 5], { delay: '1h' })
  await s.t.mill.enqueue(other, null, { delay: '1h' })
  assert.equal(await s.value('jobs_waiting', { type }), 3)
  assert.equal(await s.value('jobs_delayed', { type }), 2)
  assert.equal(await s.value('jobs_delayed', { type: 'other' }), 1)
  assert.equal(await s.value('worker_instances'), 0)
  const worker = await s.t.mill.work([other])
  const second = await s.t.mill.work([other])
  assert.equal(await s.value('worker_instances'), 2)
  await second.stop()
  assert.equal(await s.value('worker_instances'), 1)
  assert.equal(await s.value('jobs_active', { type: 'other' }), 0)
  await worker.stop()
})

// A144
test('histograms of duration, attempts and waiting have observations after a run', async () => {
  await using s = await stage()
  await s.t.mill.enqueue(flaky, null, { delay: '1m' })
  await s.t.clock.advance('65s')
  await drain(s.t.mill, [flaky])
  await s.t.clock.advance('40s')
  await drain(s.t.mill, [flaky])
  assert.equal(await s.value('job_duration_seconds_count', { type }), 2)
  assert.equal(await s.value('job_attempts_sum', { type }), 2)
  assert.equal(await s.value('job_attempts_bucket', { type, le: '1' }), 0)
  assert.equal(await s.value('job_attempts_bucket', { type, le: '2' }), 1)
  // It was due after a minute and waited for 5 s; the 30 s that its retry waited are not the queue's.
  assert.equal(await s.value('queue_wait_time_seconds_sum', { type }), 5)
  assert.equal(await s.value('queue_wait_time_seconds_count', { type }), 1)
})

// A146
test('a running job is active until it ends', async () => {
  await using s = await stage()
  const gate = Promise.withResolvers<void>()
  const slow = defineJob({ type, run: () => gate.promise })
  const started = s.t.mill.events.next('job.started')
  await s.t.mill.work([slow])
  await s.t.mill.enqueue(slow, null)
  await started
  const active = parseExposition(await s.metrics.collectMetrics()).get('ruvbot_worker_jobs_active')
  assert.equal(active?.help, 'Currently active jobs')
  assert.equal(active?.type, 'gauge')
  assert.deepEqual(active?.samples, [
    { name: 'ruvbot_worker_jobs_active', labels: { type, engine: 'memory' }, value: 1 },
  ])
  const settled = s.t.mill.events.next('job.settled')
  gate.resolve()
  await settled
  assert.equal(await s.value('jobs_active', { type }), 0)
})

test('what a lost lease or a stopped worker leaves behind is not active', async () => {
  const events = new Events()
  const metrics = await attachMetrics({ events, engine: { name: 'none', counts: async () => ({}) } })
  const active = async () => sampleValue(await metrics.collectMetrics(), 'millrace_jobs_active', { type })
  const start = (id: string, worker: string): void => {
    const facts = { id, type, priority: 5, attempts: 3, tenant: null, runAtMs: 0, createdAtMs: 0 }
    events.emit('job.started', { job: facts, attempt: 1, worker })
    if (id === 'lost') events.emit('lease.lost', { job: facts, attempt: 1, worker, reason: 'expired', started: true })
  }
  start('a', 'one')
  start('lost', 'one')
  start('b', 'two')
  assert.equal(await active(), 2)
  // What is given back, or lost, before its handler was called has never been active.
  const waiting = { id: 'c', type, priority: 5, attempts: 3, tenant: null, runAtMs: 0, createdAtMs: 0 }
  const released = { kind: 'release', delayMs: 0, reason: 'not-started' } as const
  const ended = { job: waiting, attempt: 1, worker: 'two', started: false }
  events.emit('job.settled', { ...ended, outcome: released, durationMs: 0 })
  events.emit('lease.lost', { ...ended, reason: 'expired' })
  assert.equal(await active(), 2)
  events.emit('worker.stopped', { worker: 'one' })
  assert.equal(await active(), 1)
  events.emit('lease.lost', { ...ended, worker: 'one', reason: 'expired', started: true })
  assert.equal(await active(), 1)
})

// A147
test('durations fall into the documented buckets', async () => {
  await using s = await stage()
  const twoSeconds = defineJob({ type, run: () => s.t.clock.sleep(2_000) })
  const started = s.t.mill.events.next('job.started')
  const settled = s.t.mill.events.next('job.settled')
  await s.t.mill.work([twoSeconds])
  await s.t.mill.enqueue(twoSeconds, null)
  await started
  await s.t.clock.advance('2s')
  await settled
  const family = parseExposition(await s.metrics.collectMetrics()).get('ruvbot_worker_job_duration_seconds')
  assert.equal(family?.help, 'Job processing duration')
  assert.equal(family?.type, 'histogram')
  const buckets = family?.samples.filter(({ name }) => name.endsWith('_bucket')) ?? []
  assert.deepEqual(
    buckets.map(({ labels, value }) => [labels.le, value]),
    [
      ['0.1', 0],
      ['0.5', 0],
      ['1', 0],
      ['5', 1],
      ['10', 1],
      ['30', 1],
      ['60', 1],
      ['300', 1],
      ['+Inf', 1],
    ],
  )
  assert.deepEqual([...new Set(family?.samples.map(({ labels }) => labels.type))], [type])
})

// A150 X068
test('the exposition is what Prometheus reads', async () => {
  await using s = await stage('millrace_')
  const odd = defineJob({ type: 'odd.name:with-all', attempts: 1, run: () => 1 })
  await s.t.mill.enqueue(odd, null)
  await drain(s.t.mill, [odd])
  const text = await s.metrics.collectMetrics()
  assert.equal(s.metrics.contentType, 'text/plain; version=0.0.4; charset=utf-8')
  const families = parseExposition(text)
  const expected = Object.values(METRIC_NAMES).map((name) => `millrace_${name}`)
  assert.deepEqual([...families.keys()].toSorted(), expected.toSorted())
  for (const name of expected) assert.ok((families.get(name)?.samples.length ?? 0) > 0, name)
  for (const [name, { type: kind }] of families) assert.equal(kind === 'counter', name.endsWith('_total'), name)
})

// X028
test('labels name types and words, never a tenant or an id', async () => {
  await using s = await stage()
  const { id } = await s.t.mill.enqueue(good, { secret: 'x-payload' }, { tenant: { orgId: 'acme' } })
  await drain(s.t.mill, [good])
  const text = await s.metrics.collectMetrics()
  const labels = [...parseExposition(text).values()].flatMap(({ samples }) =>
    samples.flatMap((one) => Object.keys(one.labels)),
  )
  assert.deepEqual([...new Set(labels)].toSorted(), ['engine', 'le', 'outcome', 'reason', 'state', 'status', 'type'])
  for (const never of [id, 'acme', 'x-payload']) assert.ok(!text.includes(never), never)
})

test('a start whose worker died counts as failed when it is reaped', async () => {
  await using s = await stage()
  const dies = defineJob({ type, attempts: 1, lease: '10s', run: () => 1 })
  await s.t.mill.enqueue(dies, null)
  const consumer = await s.t.mill.engine.consume({ types: [{ type, leaseMs: 10_000 }], worker: 'dead' })
  await consumer.claim({ max: 1, waitMs: 0, signal: new AbortController().signal })
  const reaped = s.t.mill.events.next('lease.reaped')
  await s.t.mill.keep({ jobs: [dies], reap: '5s' })
  await s.t.clock.advance('30s')
  await reaped
  assert.equal(await s.value('jobs_total', { type, status: 'failed' }), 1)
  assert.equal(await s.value('jobs_retried_total', { type }), 0)
  assert.equal(await s.value('job_duration_seconds_count', { type }), 0, 'nobody knows how long it ran')
})

test('two mills of one process have each their own metrics', async () => {
  await using one = await stage()
  await using other = await stage()
  await one.t.mill.enqueue(good, null)
  await drain(one.t.mill, [good])
  assert.equal(await one.value('jobs_completed_total', { type }), 1)
  assert.equal(await other.value('jobs_completed_total', { type }), null)
  const { default: prom } = await import('prom-client')
  assert.deepEqual(prom.register.getMetricsAsArray(), [])
})

test('after detaching nothing more is counted', async () => {
  await using s = await stage()
  s.metrics.detach()
  await s.t.mill.enqueue(good, null)
  await drain(s.t.mill, [good])
  await turn()
  assert.equal(await s.value('jobs_completed_total', { type }), null)
})

// X031
test('a type may have hyphens because it is a label, and no name is registered twice', async () => {
  await using s = await stage()
  await s.t.mill.enqueue(good, null)
  for (const name of parseExposition(await s.metrics.collectMetrics()).keys()) assert.match(name, /^[a-z_0-9]+$/)
  assert.equal(await s.value('jobs_waiting', { type: 'webhook-dispatch' }), 1)
  const { instrument } = jobTableMetrics()
  await assert.rejects(
    attachMetrics(s.t.mill, { instruments: [instrument, instrument] }),
    /reaper_requeues_total.*already been registered/,
  )
})

test('a prefix that Prometheus would refuse is refused', async () => {
  const mill = { events: new Events(), engine: { name: 'none', counts: async () => ({}) } }
  await assert.rejects(attachMetrics(mill, { prefix: 'my-app_' }), { code: 'ERR_OPTION_INVALID' })
})
