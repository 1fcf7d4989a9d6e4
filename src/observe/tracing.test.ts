/** With OpenTelemetry's own SDK. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import { withoutPackage } from '../../test/fixtures/without-package.ts'
import { defineJob } from '../job/definition.ts'
import { drain } from '../testing/drain.ts'
import { openForTest, type TestMill } from '../testing/open-for-test.ts'
import { attachTracing } from './tracing.ts'

const exporter = new InMemorySpanExporter()
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })

before(() => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  trace.setGlobalTracerProvider(provider)
})
beforeEach(() => exporter.reset())
after(async () => {
  await provider.shutdown()
  trace.disable()
  context.disable()
})

const spans = (name: string): readonly ReadableSpan[] =>
  exporter.getFinishedSpans().filter((span) => span.name === name)
const only = (name: string): ReadableSpan => {
  const found = spans(name)
  assert.equal(found.length, 1, `spans called '${name}': ${found.length}`)
  const [span] = found
  assert.ok(span)
  return span
}
const idOf = (span: ReadableSpan): string => span.spanContext().spanId
const traceOf = (span: ReadableSpan): string => span.spanContext().traceId

async function traced(): Promise<TestMill> {
  const t = await openForTest()
  await attachTracing(t.mill)
  return t
}

const mail = defineJob({ type: 'mail', run: () => 'sent' })

test('the run of a job is a child of its enqueue, which is a child of whatever enqueued it', async () => {
  await using t = await traced()
  const request = trace.getTracer('test').startSpan('request')
  const { id } = await context.with(trace.setSpan(context.active(), request), () =>
    t.mill.enqueue(mail, { secret: 'x-payload' }, { tenant: { orgId: 'acme' } }),
  )
  request.end()
  await drain(t.mill, [mail])
  const [enqueue, run] = [only('enqueue mail'), only('run mail')]
  assert.equal(enqueue.parentSpanContext?.spanId, request.spanContext().spanId)
  assert.equal(run.parentSpanContext?.spanId, idOf(enqueue))
  assert.equal(traceOf(run), request.spanContext().traceId)
  assert.deepEqual([enqueue.kind, run.kind], [SpanKind.PRODUCER, SpanKind.CONSUMER])
  assert.deepEqual(enqueue.attributes, {
    'messaging.system': 'millrace',
    'millrace.engine': 'memory',
    'messaging.operation.name': 'enqueue',
    'messaging.operation.type': 'send',
    'messaging.destination.name': 'mail',
    'messaging.message.id': id,
    'messaging.message.body.size': 22,
  })
  assert.partialDeepStrictEqual(run.attributes, {
    'messaging.message.id': id,
    'millrace.attempt': 1,
    'millrace.attempts': 3,
    'millrace.outcome': 'complete',
  })
  assert.equal(run.status.code, SpanStatusCode.UNSET)
  // I12
  const said = JSON.stringify(exporter.getFinishedSpans().map(({ attributes, events }) => ({ attributes, events })))
  for (const never of ['x-payload', 'acme']) assert.ok(!said.includes(never), never)
})

test('whatever a handler does belongs to its run, other jobs that it enqueues too', async () => {
  await using t = await traced()
  const child = defineJob({ type: 'child', run: () => trace.getTracer('test').startSpan('inner').end() })
  const parent = defineJob({ type: 'parent', run: async () => void (await t.mill.enqueue(child, null)) })
  await t.mill.enqueue(parent, null)
  await drain(t.mill, [parent, child])
  assert.equal(only('enqueue child').parentSpanContext?.spanId, idOf(only('run parent')))
  assert.equal(only('run child').parentSpanContext?.spanId, idOf(only('enqueue child')))
  assert.equal(only('inner').parentSpanContext?.spanId, idOf(only('run child')))
  assert.equal(traceOf(only('inner')), traceOf(only('enqueue parent')))
})

test('each attempt is a span with its error, redacted; jobs at the same time are not mixed up', async () => {
  await using t = await traced()
  const flaky = defineJob({
    type: 'flaky',
    attempts: 2,
    backoff: { kind: 'fixed', delay: 0 },
    run: ({ job }) => Promise.reject(new TypeError(`no ann@example.com in start ${job.attempt}`)),
  })
  const receipts = await t.mill.enqueueMany(flaky, [1, 2])
  await drain(t.mill, [flaky])
  await t.clock.advance('1s')
  await drain(t.mill, [flaky])
  assert.equal(only('enqueue flaky').attributes['messaging.batch.message_count'], 2)
  const runs = spans('run flaky')
  assert.equal(runs.length, 4)
  for (const run of runs) {
    assert.equal(run.parentSpanContext?.spanId, idOf(only('enqueue flaky')))
    const attempt = run.attributes['millrace.attempt']
    assert.equal(run.attributes['millrace.outcome'], attempt === 1 ? 'retry' : 'dead')
    assert.deepEqual(run.status, { code: SpanStatusCode.ERROR, message: `no [email] in start ${attempt}` })
    assert.partialDeepStrictEqual(run.events[0], {
      name: 'exception',
      attributes: { 'exception.type': 'TypeError', 'exception.message': `no [email] in start ${attempt}` },
    })
    assert.ok(!JSON.stringify(run.events).includes('ann@example.com'))
  }
  const ids = runs.map((run) => run.attributes['messaging.message.id'])
  assert.deepEqual(ids.toSorted(), receipts.flatMap(({ id }) => [id, id]).toSorted())
})

test('an enqueue that fails is an error of its span', async () => {
  await using t = await traced()
  await t.mill.engine.close()
  await assert.rejects(t.mill.enqueue(mail, null))
  assert.equal(only('enqueue mail').status.code, SpanStatusCode.ERROR)
})

test('a start that loses its lease, or whose worker stops for good, ends its span', async () => {
  await using t = await traced()
  const stuck = defineJob({ type: 'stuck', run: () => new Promise(() => {}) })
  const started = t.mill.events.next('job.started')
  await t.mill.work([stuck])
  const { id } = await t.mill.enqueue(stuck, null)
  await started
  const lost = t.mill.events.next('lease.lost')
  await t.mill.cancel(id)
  await t.clock.advance('30s')
  await lost
  assert.equal(only('run stuck').attributes['millrace.outcome'], 'lost')
  assert.match(only('run stuck').status.message ?? '', /cancelled/)
})

test('a job that nobody traced, or whose trace cannot be read, begins a trace of its own', async () => {
  await using t = await openForTest()
  await t.mill.enqueue(mail, null)
  for (const traceparent of ['', 'nonsense', `00-${'0'.repeat(32)}-${'0'.repeat(16)}-01`]) {
    t.mill.tracing.tracer = {
      enqueue: (jobs, store) => store(jobs.map((job) => ({ ...job, options: { trace: { traceparent } } }))),
      run: (_start, run) => run(),
    }
    await t.mill.enqueue(mail, null)
  }
  const detach = await attachTracing(t.mill)
  await drain(t.mill, [mail])
  const runs = spans('run mail')
  assert.equal(runs.length, 4)
  assert.deepEqual([...new Set(runs.map((run) => run.parentSpanContext))], [undefined])
  assert.equal(new Set(runs.map(traceOf)).size, 4)
  detach()
  await t.mill.enqueue(mail, null)
  await drain(t.mill, [mail])
  assert.deepEqual([spans('run mail').length, spans('enqueue mail').length], [4, 0])
})

test('the trace of another system, with its state, is carried on', async () => {
  await using t = await traced()
  const [traceId, spanId] = ['a'.repeat(32), 'b'.repeat(16)]
  t.mill.tracing.tracer = {
    ...t.mill.tracing.tracer,
    run: t.mill.tracing.tracer?.run.bind(t.mill.tracing.tracer) ?? (() => {}),
    enqueue: (jobs, store) => {
      const carried = { traceparent: `00-${traceId}-${spanId}-01`, tracestate: 'vendor=1' }
      return store(jobs.map((job) => ({ ...job, options: { trace: carried } })))
    },
  }
  await t.mill.enqueue(mail, null)
  await drain(t.mill, [mail])
  const run = only('run mail')
  assert.deepEqual([traceOf(run), run.parentSpanContext?.spanId], [traceId, spanId])
  assert.equal(run.spanContext().traceState?.get('vendor'), '1')
})

test('without an SDK a job carries no trace, and runs', async () => {
  trace.disable()
  try {
    await using t = await traced()
    const { id } = await t.mill.enqueue(mail, null)
    assert.equal((await t.mill.job(id))?.options, null)
    assert.equal((await drain(t.mill, [mail])).complete, 1)
    assert.deepEqual(exporter.getFinishedSpans(), [])
  } finally {
    trace.setGlobalTracerProvider(provider)
  }
})

test('without the package it says what to install', async () => {
  await using t = await openForTest()
  const refusal = { code: 'ERR_MODULE_MISSING', message: /npm install @opentelemetry\/api/ }
  await withoutPackage('@opentelemetry/api', () => assert.rejects(attachTracing(t.mill), refusal))
})
