import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newJob } from '../../../test/fixtures/new-job.ts'
import { type NewJob, plainJob } from '../../job/job.ts'
import { isTopic, RecordJob, toJob, toRecord } from './job-record.ts'
import type { LogRecord } from './record.ts'

const AT_MS = Date.UTC(2026, 10, 16)

function record(fields: Partial<LogRecord> = {}): LogRecord {
  return {
    topic: 'escrow.commands',
    partition: 3,
    offset: 42n,
    timestampMs: AT_MS,
    key: null,
    value: Buffer.from('{"n":1}'),
    headers: new Map(),
    ...fields,
  }
}

/** As the broker would give it back. */
function roundTrip(job: NewJob): LogRecord {
  return record(toRecord(job))
}

test('a job comes back with everything it was enqueued with', () => {
  const job = newJob({
    payload: '{ "text" : "Grüße 🌍" }',
    payloadVersion: 3,
    priority: 2,
    attempts: 6,
    key: 'deal-7',
    tenant: { orgId: 'o', workspaceId: 'w' },
    options: { timeoutMs: 5 },
  })
  const { job: read, verdict } = toJob(roundTrip(job))
  assert.equal(verdict, null)
  const { id, type, payload, payloadVersion, priority, attempts, key, tenant, options } = job
  assert.deepEqual(
    { ...read },
    {
      ...{ id, type, payload, payloadVersion, priority, attempts, key, tenant, options },
      createdAtMs: AT_MS,
      runAtMs: AT_MS,
      latestKey: null,
      after: null,
    },
  )
  const plain = toJob(roundTrip(newJob())).job
  assert.deepEqual([plain.key, plain.tenant, plain.options], [null, null, null])
})

test('a plain copy of a job has what is read only when it is asked for', () => {
  const job = newJob({ priority: 2, attempts: 6, key: 'deal-7', tenant: { orgId: 'o' } })
  const { id, priority, attempts, key, tenant } = plainJob(new RecordJob(roundTrip(job), job.type))
  assert.deepEqual(
    { id, priority, attempts, key, tenant },
    { id: job.id, priority: 2, attempts: 6, key: 'deal-7', tenant: { orgId: 'o' } },
  )
  assert.equal(new RecordJob(record(), job.type, 9).attempts, 9, 'the attempts of its worker, where it does not say')
})

test('the trace of a job stands in the headers that W3C names, and is read from them', () => {
  const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`
  const ours = roundTrip(newJob({ options: { timeoutMs: 5, trace: { traceparent, tracestate: 'vendor=1' } } }))
  assert.equal(ours.headers.get('traceparent')?.toString(), traceparent)
  assert.deepEqual(toJob(ours).job.options, { timeoutMs: 5, trace: { traceparent, tracestate: 'vendor=1' } })
  const foreign = record({ headers: new Map([['traceparent', Buffer.from(traceparent)]]) })
  assert.deepEqual(toJob(foreign).job.options, { trace: { traceparent } })
})

test('a plain record of another producer is a job of its topic, known by its coordinates', () => {
  const { job, verdict } = toJob(record({ key: Buffer.from('deal-7') }))
  assert.equal(verdict, null)
  assert.deepEqual(
    [job.id, job.type, job.payload, job.key, job.payloadVersion, job.attempts],
    ['escrow.commands:3:42', 'escrow.commands', '{"n":1}', 'deal-7', 1, 3],
  )
})

test('a record without a value has the payload null', () => {
  assert.deepEqual(toJob(record({ value: null })).job.payload, 'null')
  assert.equal(toJob(record({ value: null })).verdict, null)
})

test('what cannot be decoded has a verdict that says so without its content', () => {
  const bytes = toJob(record({ value: Buffer.from([0xff, 0xfe, 0x00]) }))
  assert.match(bytes.verdict ?? '', /3 bytes is no UTF-8 text/)
  assert.equal(bytes.job.payload, 'null')
  const text = toJob(record({ value: Buffer.from('text, but no JSON') }))
  assert.deepEqual([text.verdict, text.job.payload], [null, 'text, but no JSON'], 'the worker is to judge it')
})

test('headers in other encodings and values that make no sense are passed over', () => {
  const headers = new Map([
    ['millrace-id', Buffer.from([0xff])],
    ['millrace-attempts', Buffer.from('many')],
    ['millrace-priority', Buffer.from('-1')],
    ['millrace-payload-version', Buffer.alloc(0)],
    ['millrace-tenant', Buffer.from('[1]')],
    ['millrace-options', Buffer.from('{')],
  ])
  const { job, verdict } = toJob(record({ headers }))
  assert.equal(verdict, null)
  assert.deepEqual(
    [job.id, job.attempts, job.priority, job.payloadVersion, job.tenant, job.options],
    ['escrow.commands:3:42', 3, 5, 1, null, null],
  )
})

test('a key that is no text is none', () => {
  assert.equal(toJob(record({ key: Buffer.from([0xff]) })).job.key, null)
})

test('a type that Kafka would not take as a topic is told apart', () => {
  for (const type of ['escrow.commands', 'a', 'A-b_c.9']) assert.equal(isTopic(type), true, type)
  for (const type of ['a:b', '.', '..', '', 'a b', 'x'.repeat(250)]) assert.equal(isTopic(type), false, type)
})
