import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { OptionError } from '../errors.ts'
import { defineJob, type JobSpec } from './definition.ts'

type AnySpec = JobSpec<z.ZodType, unknown>

// A09 A37 A40 A52 B22 B97 B118
test('a definition has every default resolved', () => {
  const { handledBy, ...plain } = defineJob({ type: 'greet' })
  assert.equal(typeof handledBy, 'function')
  assert.deepEqual(plain, {
    type: 'greet',
    schema: null,
    version: 1,
    upcast: null,
    attempts: 3,
    backoff: { kind: 'exponential', base: '1s', max: '1h', jitter: { add: '1s' } },
    timeoutMs: 300_000,
    priority: 5,
    leaseMs: 60_000,
    concurrency: null,
    slots: null,
    limit: null,
    tags: [],
    critical: false,
    keepCompleted: null,
    keepDead: null,
    retention: {},
    schedule: null,
    hooks: {},
    byName: null,
    run: null,
  })
})

// A41 A42 A43 A54 A75 B97 B118 X118
test('what a definition says is kept, with durations in milliseconds', () => {
  const job = defineJob({
    type: 'webhook-dispatch',
    attempts: 10,
    backoff: { kind: 'fixed', delay: '60s' },
    timeout: '30s',
    priority: 1,
    lease: '5s',
    concurrency: 20,
    limit: { max: 100, per: '1s' },
    critical: true,
  })
  assert.deepEqual(
    [job.attempts, job.timeoutMs, job.priority, job.leaseMs, job.concurrency, job.limit, job.critical],
    [10, 30_000, 1, 5_000, 20, { max: 100, perMs: 1_000 }, true],
  )
})

test('concurrency is a number for each worker, or an object for all workers, or for each tenant', () => {
  const kept = (concurrency: NonNullable<AnySpec['concurrency']>) => {
    const job = defineJob({ type: 'sync', concurrency })
    return [job.concurrency, job.slots]
  }
  assert.deepEqual(kept(20), [20, null])
  assert.deepEqual(kept({ max: 20 }), [null, { max: 20, by: null }])
  assert.deepEqual(kept({ max: 20, by: 'tenant' }), [null, { max: 20, by: 'tenant' }])
  // @ts-expect-error a caller without types can give anything
  assert.throws(() => kept({ max: 2, by: 'workspace' }), /'concurrency.by' is 'workspace'; give 'tenant'/)
  // @ts-expect-error the same
  assert.throws(() => kept({ max: 2, per: 'tenant' }), OptionError)
})

test('a definition cannot be changed afterwards', () => {
  const job = defineJob({ type: 'greet' })
  assert.throws(() => Object.assign(job, { attempts: 99 }), TypeError)
})

test('handledBy adds the handler and leaves the first definition without', () => {
  const bare = defineJob({ type: 'greet', payload: z.object({ name: z.string() }), attempts: 7 })
  const handled = bare.handledBy(({ payload }) => payload.name.length)
  assert.equal(bare.run, null)
  assert.equal(typeof handled.run, 'function')
  assert.deepEqual([handled.type, handled.attempts, handled.schema], ['greet', 7, bare.schema])
})

test('payload and result are inferred', () => {
  const job = defineJob({
    type: 'typed',
    payload: z.object({ n: z.string().transform(Number) }),
    run: ({ payload }) => ({ double: payload.n * 2 }),
  })
  job.handledBy(({ payload }) => payload.n.toFixed(2))
  // @ts-expect-error the handler gets the schema's output, which has no such field
  job.handledBy(({ payload }) => payload.missing)
})

// A37
test('a type is 1 to 128 letters, digits and . _ : -, and not a name that every object has', () => {
  for (const type of ['a', 'send-invoice', 'embedding:v2', 'A.b_c', '7', 'x'.repeat(128)]) {
    assert.equal(defineJob({ type }).type, type)
  }
  const wrong = ['', 'a b', '-a', '_a', 'ä', 'a/b', "a'b", 'x'.repeat(129), 'a\n', 'constructor', 'toString']
  for (const type of wrong) assert.throws(() => defineJob({ type }), /'type' is /, type)
  for (const type of [undefined, null, 5, {}]) {
    // @ts-expect-error a caller without types can give anything
    assert.throws(() => defineJob({ type }), OptionError, String(type))
  }
})

// A41 B23
test('a definition that contradicts itself or is out of range is refused', () => {
  const wrong: readonly Partial<AnySpec>[] = [
    { priority: 0 },
    { priority: 11 },
    { attempts: 0 },
    { timeout: 0 },
    { lease: 99 },
    { concurrency: 0 },
    { concurrency: 1.5 },
    { concurrency: { max: 0 } },
    { concurrency: { max: 1.5, by: 'tenant' } },
    { limit: { max: 0, per: '1s' } },
    { limit: { max: 1.5, per: '1s' } },
    { limit: { max: 5, per: 0 } },
    { version: 0 },
    { version: 1.5 },
    { upcast: (payload) => payload },
    { version: 1, upcast: (payload) => payload },
    { backoff: { kind: 'list', delays: [] } },
    { backoff: { kind: 'exponential', base: '2h', max: '1h' } },
  ]
  for (const part of wrong) {
    assert.throws(
      () => defineJob({ type: 'wrong', ...part }),
      (error) => error instanceof OptionError && error.code === 'ERR_OPTION_INVALID',
      JSON.stringify(part),
    )
  }
})
