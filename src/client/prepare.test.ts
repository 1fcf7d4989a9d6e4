import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import type { Engine } from '../engine/engine.ts'
import { MemoryEngine } from '../engines/memory/index.ts'
import { OptionError, PayloadError, UnsupportedError } from '../errors.ts'
import { defineJob } from '../job/definition.ts'
import type { EnqueueOptions } from '../job/options.ts'
import { open } from './mill.ts'
import { prepareJobs } from './prepare.ts'

const NOW_MS = Date.UTC(2026, 10, 15)
const send = defineJob({ type: 'send', payload: z.object({ to: z.string() }), version: 2, priority: 3, attempts: 7 })

const prepare = (options: EnqueueOptions = {}, payloads: readonly unknown[] = [{ to: 'a' }], engine?: Engine) =>
  prepareJobs({ engine: engine ?? new MemoryEngine(), nowMs: NOW_MS, payloadBytesMax: 100 }, send, payloads, options)

// A37 A53 X091
test('what an enqueue leaves out comes from the definition', async () => {
  const [job] = await prepare()
  assert.ok(job)
  const { id, ...rest } = job
  assert.match(id, /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/)
  assert.deepEqual(rest, {
    type: 'send',
    payload: '{"to":"a"}',
    payloadVersion: 2,
    priority: 3,
    attempts: 7,
    delayMs: 0,
    runAtMs: null,
    key: null,
    latest: null,
    tenant: null,
    options: null,
    after: null,
  })
})

// A39 A46 A53
test('what an enqueue says overrides the definition field by field', async () => {
  const at = new Date(NOW_MS + 5_000)
  const [job] = await prepare({ attempts: 2, key: 'k', at, tenant: { orgId: 'o' }, timeout: '1s' })
  assert.ok(job)
  assert.deepEqual(
    [job.attempts, job.priority, job.key, job.runAtMs, job.delayMs, job.tenant, job.options],
    [2, 3, 'k', NOW_MS + 5_000, 0, { orgId: 'o' }, { timeoutMs: 1_000 }],
  )
})

// B16 X122
test('many payloads become jobs with increasing ids, in their order', async () => {
  const jobs = await prepare(
    {},
    Array.from({ length: 100 }, (_, index) => ({ to: `${index}` })),
  )
  const ids = jobs.map(({ id }) => id)
  assert.deepEqual(ids, ids.toSorted())
  assert.deepEqual(
    jobs.map(({ payload }) => JSON.parse(payload).to),
    Array.from({ length: 100 }, (_, index) => `${index}`),
  )
})

// C10 X132
test('a latest key may carry a sequence number of the caller’s, from 1', async () => {
  const latestOf = async (latest: NonNullable<EnqueueOptions['latest']>) => (await prepare({ latest }))[0]?.latest
  assert.deepEqual(await latestOf('k'), { key: 'k', seq: null })
  assert.deepEqual(await latestOf({ key: 'k', seq: 4 }), { key: 'k', seq: 4 })
  for (const seq of [0, -1, 1.5, Number.NaN, 2 ** 53]) {
    await assert.rejects(latestOf({ key: 'k', seq }), /'latest\.seq' is .*whole number from 1/)
  }
})

test('options that contradict each other are refused', async () => {
  await assert.rejects(prepare({ key: 'a', latest: 'b' }), /'key' and 'latest' contradict each other/)
  await assert.rejects(prepare({ delay: '1s', at: new Date(NOW_MS) }), /'delay' and 'at' contradict each other/)
})

// B23
test('options out of range are refused, one by one', async () => {
  const wrong: readonly EnqueueOptions[] = [
    { priority: 0 },
    { priority: 11 },
    { attempts: 0 },
    { delay: -1 },
    { delay: '99999999d' },
    { timeout: 0 },
    { key: '' },
    { latest: '' },
    { tenant: { orgId: '' } },
    { at: new Date(Number.NaN) },
    { backoff: { kind: 'list', delays: [] } },
  ]
  for (const options of wrong) await assert.rejects(prepare(options), OptionError, JSON.stringify(options))
})

// B189
test('one bad payload refuses the whole batch before the engine hears of it', async () => {
  await assert.rejects(prepare({}, [{ to: 'a' }, { to: 5 }]), PayloadError)
  await assert.rejects(prepare({}, [{ to: 'x'.repeat(200) }]), /above the limit of 100/)
})

test('an override that the engine cannot keep is refused, as a definition would be', async () => {
  const engine: Engine = Object.create(new MemoryEngine(), {
    name: { value: 'short' },
    capabilities: {
      value: { ...new MemoryEngine().capabilities, retryDelayMaxMs: 120_000, enqueueDelayMaxMs: 60_000 },
    },
  })
  const backoff = { kind: 'fixed', delay: '10m' } as const
  await prepare({}, [{ to: 'a' }], engine)
  await assert.rejects(prepare({ backoff }, [{ to: 'a' }], engine), UnsupportedError)
  // With one start there is no retry to wait for.
  await prepare({ backoff, attempts: 1 }, [{ to: 'a' }], engine)
  // More starts than the definition has let the exponential backoff grow beyond the limit.
  await assert.rejects(prepare({ attempts: 20 }, [{ to: 'a' }], engine), UnsupportedError)
  await assert.rejects(prepare({ at: new Date(NOW_MS + 60_001) }, [{ to: 'a' }], engine), UnsupportedError)
})

test('the bad item of a batch is named by its index, and the bad step of a flow by its name', async (t) => {
  const mill = await open('memory:', { payloadBytesMax: 20 })
  t.after(() => mill.close())
  const job = defineJob({ type: 'small' })
  const large = 'x'.repeat(30)
  const inMany = mill.enqueueMany(job, ['a', 'b', large, 'c'])
  await assert.rejects(inMany, (error) => {
    assert.ok(error instanceof PayloadError)
    assert.match(error.message, /^payloads\[2\]: the payload of 'small' has 32 bytes/)
    assert.match(error.stack ?? '', /payloads\[2\]/)
    return true
  })
  assert.deepEqual(await mill.counts(), {})
  await assert.rejects(mill.enqueue(job, large), /^PayloadError: the payload of 'small'/)
  const flow = { first: { job, payload: 'a' }, second: { job, payload: large, after: ['first'] } } as const
  await assert.rejects(mill.enqueueFlow(flow), /^PayloadError: step 'second': the payload of 'small'/)
})
