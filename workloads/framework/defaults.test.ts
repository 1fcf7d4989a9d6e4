import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { JobTimeoutError } from '../../src/errors.ts'
import { defineJob } from '../../src/index.ts'
import { drain, openForTest } from '../../src/testing/index.ts'
import { effectiveOptions, JOB_DEFAULTS, JOB_TYPES, JobDispatcher, type JobType, specOf } from './index.ts'

interface Expected {
  readonly urgency: number
  readonly priority: number
  readonly attempts: number
  readonly backoff: { readonly type: string; readonly delay: number }
  readonly timeout: number
  /** What is waited after the first failures. */
  readonly waits: readonly number[]
}

const exponential = (delay: number) => ({ type: 'exponential', delay })

const SPECIFIED: ReadonlyMap<JobType, Expected> = new Map<JobType, Expected>([
  // A47
  [
    'memory-consolidation',
    {
      urgency: 5,
      priority: 7,
      attempts: 3,
      backoff: exponential(5_000),
      timeout: 300_000,
      waits: [5_000, 10_000],
    },
  ],
  // A48
  [
    'embedding-batch',
    {
      urgency: 10,
      priority: 4,
      attempts: 5,
      backoff: exponential(2_000),
      timeout: 60_000,
      waits: [2_000, 4_000, 8_000, 16_000],
    },
  ],
  // A49
  [
    'webhook-dispatch',
    {
      urgency: 15,
      priority: 1,
      attempts: 10,
      backoff: exponential(1_000),
      timeout: 30_000,
      waits: [1, 2, 4, 8, 16, 32, 64, 128, 256].map((seconds) => seconds * 1_000),
    },
  ],
  // A50
  [
    'pattern-training',
    {
      urgency: 1,
      priority: 9,
      attempts: 2,
      backoff: { type: 'fixed', delay: 60_000 },
      timeout: 3_600_000,
      waits: [60_000],
    },
  ],
  // A51
  [
    'session-cleanup',
    {
      urgency: 3,
      priority: 8,
      attempts: 3,
      backoff: exponential(10_000),
      timeout: 120_000,
      waits: [10_000, 20_000],
    },
  ],
])

/** A52 */
const GLOBAL: Expected = {
  urgency: 0,
  priority: 10,
  attempts: 3,
  backoff: exponential(1_000),
  timeout: 300_000,
  waits: [1_000, 2_000],
}

describe('a job that is enqueued without options', () => {
  for (const type of Object.values(JOB_TYPES)) {
    const expected = SPECIFIED.get(type) ?? GLOBAL

    // A47..A52 A40 A66 X058
    test(`of ${type} has its type's attempts, waits and priority`, async () => {
      const { urgency: priority, attempts, backoff, timeout } = expected
      assert.deepEqual(effectiveOptions(type), { priority, attempts, backoff, timeout })
      const alerts: unknown[] = []
      await using stage = await openForTest({ alerter: { send: (alert) => alerts.push(alert) } })
      const { mill, clock, events } = stage
      const { id } = await new JobDispatcher(mill, [type]).dispatch({ type, data: {} })
      assert.partialDeepStrictEqual(await mill.job(id), { priority: expected.priority, attempts, options: null })
      const failing = defineJob({ ...specOf(type), run: () => Promise.reject(new Error('again')) })
      const waits: number[] = []
      for (let start = 1; start < attempts; start += 1) {
        await drain(mill, [failing])
        assert.deepEqual(alerts, [])
        const last = events.findLast((event) => event.name === 'job.settled')?.event
        const wait = last?.outcome.kind === 'retry' ? last.outcome.delayMs : assert.fail(`start ${start}`)
        waits.push(wait)
        await clock.advance(wait)
      }
      assert.deepEqual(waits, expected.waits)
      assert.equal((await drain(mill, [failing])).dead, 1)
      assert.equal(alerts.length, 1)
    })

    // A43 A47..A52 X060
    test(`of ${type} is aborted at its type's timeout and not before`, async () => {
      await using stage = await openForTest()
      const { mill, clock, events } = stage
      const reasons: unknown[] = []
      const hanging = defineJob({
        ...specOf(type),
        // It is given its whole time, however long that is beside a lease.
        run: ({ signal }) =>
          new Promise((_, reject) => {
            signal.addEventListener('abort', () => {
              reasons.push(signal.reason)
              reject(signal.reason)
            })
          }),
      })
      await new JobDispatcher(mill, [type]).dispatch({ type, data: {} })
      const started = mill.events.next('job.started')
      await mill.work([hanging], { keeper: false })
      await started
      await clock.advance(expected.timeout - 1)
      assert.equal(reasons.length, 0)
      const settled = mill.events.next('job.settled')
      await clock.advance(1)
      assert.equal((await settled).outcome.kind, 'retry')
      assert.ok(reasons[0] instanceof JobTimeoutError)
      assert.equal(events.filter(({ name }) => name === 'lease.lost').length, 0)
    })
  }
})

// A53
test('options of a job override its type field by field', async () => {
  assert.deepEqual(effectiveOptions('embedding-batch', { attempts: 2 }), {
    ...JOB_DEFAULTS['embedding-batch'],
    attempts: 2,
  })
  await using stage = await openForTest()
  const dispatcher = new JobDispatcher(stage.mill, ['embedding-batch'])
  const { id } = await dispatcher.dispatch({ type: 'embedding-batch', data: [], options: { attempts: 2 } })
  assert.partialDeepStrictEqual(await stage.mill.job(id), { attempts: 2, priority: 4, options: null })
  const other = await dispatcher.dispatch({ type: 'embedding-batch', data: [], options: { timeout: 5, priority: 0 } })
  assert.partialDeepStrictEqual(await stage.mill.job(other.id), {
    attempts: 5,
    priority: 10,
    options: { timeoutMs: 5 },
  })
})

// A53
test('a definition overrides its type field by field, too, and only what a type can have', () => {
  const job = defineJob(specOf('webhook-dispatch', { attempts: 4, removeOnComplete: 5 }))
  assert.partialDeepStrictEqual(job, { attempts: 4, keepCompleted: 5, priority: 1, timeoutMs: 30_000, critical: true })
  assert.equal(defineJob(specOf('quota-check')).critical, false)
  // @ts-expect-error: a delay belongs to one job
  assert.throws(() => specOf('quota-check', { delay: 5 }), { code: 'ERR_OPTION_INVALID', message: /'delay' belongs/ })
  // @ts-expect-error: not listed
  assert.throws(() => specOf('quota'), { code: 'ERR_TYPE_UNKNOWN' })
})
