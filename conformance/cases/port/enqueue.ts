import assert from 'node:assert/strict'
import type { NewJob } from '../../../src/job/job.ts'
import type { CaseFile } from '../../case.ts'
import { atomicEnqueue, idempotentEnqueue, need } from '../../needs.ts'
import { complete, first, idsOf, type Stage } from '../../stage.ts'

/** A job that cannot be read: storing it fails wherever the engine looks at it, whatever the engine is made of. */
function unreadable(stage: Stage): NewJob {
  return new Proxy(stage.job(), {
    get: () => {
      throw new Error('this job cannot be read')
    },
  })
}

/** The trace context of a job reaches the worker that runs it. */
const TRACE = { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, tracestate: 'vendor=1' }

export const enqueueing: CaseFile = {
  level: 'port',
  concept: 'Enqueue and receipts',
  cases: [
    {
      // B106
      name: 'every job of a batch has its own receipt, in the order given',
      guarantees: ['I1'],
      async run(stage) {
        const jobs = stage.jobs(20)
        const receipts = await stage.engine.enqueue(jobs)
        assert.deepEqual(
          receipts.map(({ id, status }) => ({ id, status })),
          jobs.map(({ id }) => ({ id, status: 'enqueued' })),
        )
        await stage.expectCounts({ ready: 20 })
      },
    },
    {
      name: 'an empty batch stores nothing',
      guarantees: ['I1'],
      async run(stage) {
        assert.deepEqual(await stage.engine.enqueue([]), [])
        await stage.expectCounts({})
      },
    },
    {
      // A46
      name: 'a claimed job carries everything it was enqueued with',
      guarantees: ['I1'],
      async run(stage) {
        const payload = '{ "text" : "Grüße, 世界 🌍\\n", "nested": [1, {"a": null}], "quote": "it\'s" }'
        const fields = {
          payload,
          payloadVersion: 3,
          attempts: 7,
          tenant: { orgId: 'org-1', workspaceId: 'ws-2' },
          options: { name: 'send-invoice', timeoutMs: 1234, backoff: { kind: 'fixed', delay: '5s' }, trace: TRACE },
        } as const
        const beforeMs = stage.nowMs
        const { id } = await stage.put(fields)
        const { job, attempt, token } = await stage.one(await stage.consume())
        assert.deepEqual(
          { payload: job.payload, payloadVersion: job.payloadVersion, attempts: job.attempts, tenant: job.tenant },
          { payload, payloadVersion: 3, attempts: 7, tenant: fields.tenant },
        )
        assert.deepEqual(job.options, fields.options)
        assert.deepEqual([job.id, job.type, job.priority, job.key, job.latestKey], [id, stage.type, 5, null, null])
        assert.ok(job.createdAtMs >= beforeMs && job.createdAtMs <= stage.nowMs, 'created at the engine’s now')
        assert.equal(attempt, 1)
        assert.ok(token.length > 0)
      },
    },
    {
      name: 'a job enqueued through one view is there for another',
      guarantees: ['I1'],
      async run(stage) {
        const rival = await stage.other()
        const { id } = await stage.put({}, rival)
        assert.deepEqual(idsOf(await stage.take(await stage.consume())), [id])
      },
    },
    {
      name: 'enqueuing the same id again stores nothing and answers duplicate',
      guarantees: ['I1', 'I7'],
      ...need(idempotentEnqueue),
      async run(stage) {
        const job = stage.job()
        await stage.engine.enqueue([job])
        const again = { ...job, payload: '{"n":2}' }
        assert.deepEqual(await stage.engine.enqueue([again]), [{ id: job.id, status: 'duplicate' }])
        const consumer = await stage.consume()
        const lease = await stage.one(consumer)
        assert.equal(lease.job.payload, job.payload)
        assert.deepEqual(await stage.engine.enqueue([again]), [{ id: job.id, status: 'duplicate' }])
        await stage.settle(consumer, lease, complete)
        assert.deepEqual(await stage.engine.enqueue([again]), [{ id: job.id, status: 'duplicate' }])
        await stage.none(consumer, 'a repeated enqueue ran again')
        await stage.expectCounts({ completed: 1 })
      },
    },
    {
      name: 'the same id twice in one batch is one job',
      guarantees: ['I1', 'I7'],
      ...need(idempotentEnqueue),
      async run(stage) {
        const job = stage.job()
        const receipts = await stage.engine.enqueue([job, job])
        assert.deepEqual(
          receipts.map(({ status }) => status),
          ['enqueued', 'duplicate'],
        )
        await stage.expectCounts({ ready: 1 })
      },
    },
    {
      name: 'repeating a batch after a lost reply stores only what was missing',
      guarantees: ['I1', 'I7'],
      ...need(idempotentEnqueue),
      async run(stage) {
        const [one, two, three] = [stage.job(), stage.job(), stage.job()]
        await stage.engine.enqueue([one, two])
        const receipts = await stage.engine.enqueue([one, two, three])
        assert.deepEqual(
          receipts.map(({ status }) => status),
          ['duplicate', 'duplicate', 'enqueued'],
        )
        await stage.expectCounts({ ready: 3 })
      },
    },
    {
      name: 'a batch that fails half-way stores nothing',
      guarantees: ['I1'],
      ...need(atomicEnqueue),
      async run(stage) {
        const jobs = stage.jobs(3)
        await assert.rejects(stage.engine.enqueue([...jobs, unreadable(stage), stage.job()]))
        await stage.expectCounts({})
        const consumer = await stage.consume()
        await stage.none(consumer, 'a part of a failed batch was stored')
        await stage.engine.enqueue(jobs)
        assert.deepEqual(
          idsOf(await stage.take(consumer, 10)),
          jobs.map(({ id }) => id),
        )
      },
    },
    {
      name: 'a batch of a thousand is stored whole',
      guarantees: ['I1'],
      async run(stage) {
        const receipts = await stage.engine.enqueue(stage.jobs(1_000))
        assert.equal(receipts.length, 1_000)
        assert.equal(first(receipts).status, 'enqueued')
        await stage.expectCounts({ ready: 1_000 })
      },
    },
    {
      name: 'a batch of three thousand that is repeated stores only what was missing',
      guarantees: ['I1', 'I7'],
      ...need(idempotentEnqueue),
      async run(stage) {
        const jobs = stage.jobs(3_000)
        await stage.engine.enqueue(jobs.slice(500, 1_500))
        const receipts = await stage.engine.enqueue(jobs)
        assert.deepEqual(
          receipts,
          jobs.map(({ id }, index) => ({ id, status: index >= 500 && index < 1_500 ? 'duplicate' : 'enqueued' })),
        )
        await stage.expectCounts({ ready: 3_000 })
      },
    },
    {
      name: 'a batch of three thousand that fails at its end stores nothing',
      guarantees: ['I1'],
      ...need(atomicEnqueue),
      async run(stage) {
        await assert.rejects(stage.engine.enqueue([...stage.jobs(3_000), unreadable(stage)]))
        await stage.expectCounts({})
        await stage.engine.enqueue([stage.job()])
        await stage.expectCounts({ ready: 1 })
      },
    },
  ],
}
