import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { z } from 'zod'
import { defineJob } from '../../src/index.ts'
import { drain, openForTest, settled } from '../../src/testing/index.ts'
import { JOB_TYPES, type JobConfig, JobDispatcher, type JobOptions, specOf } from './index.ts'

const ALL = Object.values(JOB_TYPES)
const type = 'slack-sync'

// A36 A17
test('each of the eighteen types runs, or is refused at once when nothing runs it', async () => {
  await using stage = await openForTest()
  const { mill } = stage
  const workers = ALL.map((listed) => defineJob({ ...specOf(listed), run: () => listed }))
  const dispatcher = new JobDispatcher(mill, workers)
  for (const listed of ALL) await dispatcher.dispatch({ type: listed, data: {} })
  assert.equal((await drain(mill, workers)).complete, 18)
  assert.deepEqual((await mill.jobs()).map((job) => job.result).toSorted(), ALL.toSorted())

  const webhooks = new JobDispatcher(mill, ['webhook-dispatch'])
  for (const listed of ALL.filter((each) => each !== 'webhook-dispatch')) {
    await assert.rejects(webhooks.dispatch({ type: listed, data: {} }), {
      code: 'ERR_HANDLER_MISSING',
      message: new RegExp(`no worker is known for '${listed}'`),
    })
  }
  assert.equal((await mill.jobs()).length, 18)
})

// A17 A37 X016
test('a type that is not listed, or none, is refused, and so is a job without data', async () => {
  await using stage = await openForTest()
  const dispatcher = new JobDispatcher(stage.mill, ALL)
  const send = (config: object) => dispatcher.dispatch(config as JobConfig)
  await assert.rejects(send({ type: 'send-fax', data: {} }), { code: 'ERR_TYPE_UNKNOWN', message: /'send-fax'/ })
  await assert.rejects(send({ data: {} }), { code: 'ERR_TYPE_UNKNOWN' })
  await assert.rejects(send({ type }), { code: 'ERR_PAYLOAD_NOT_JSON' })
  const own = defineJob({ type: 'send-fax', run: () => 1 })
  assert.throws(() => new JobDispatcher(stage.mill, [own]), { code: 'ERR_TYPE_UNKNOWN' })
  assert.throws(() => new JobDispatcher(stage.mill, [type, type]), { code: 'ERR_OPTION_INVALID' })
  assert.deepEqual(await stage.mill.jobs(), [])
})

// A37
test('data is checked against the schema of the definition', async () => {
  await using stage = await openForTest()
  const job = defineJob({ ...specOf(type), payload: z.object({ channel: z.string() }) })
  const dispatcher = new JobDispatcher(stage.mill, [job])
  await assert.rejects(dispatcher.dispatch({ type, data: { channel: 7 } }), { code: 'ERR_PAYLOAD_INVALID' })
  assert.equal((await dispatcher.dispatch({ type, data: { channel: 'c' } })).status, 'enqueued')
})

// A11
test('a caller has its receipt before, and whether or not, the work is done', async () => {
  await using stage = await openForTest()
  const { mill } = stage
  const dispatcher = new JobDispatcher(mill, ALL)
  const started: string[] = []
  const all = Promise.withResolvers<void>()
  const neverEnding = (listed: string) => {
    started.push(listed)
    if (started.length === 18) all.resolve()
    return new Promise(() => {})
  }
  const endless = ALL.map((listed) => defineJob({ ...specOf(listed), run: () => neverEnding(listed) }))
  for (const listed of ALL) assert.equal((await dispatcher.dispatch({ type: listed, data: {} })).status, 'enqueued')
  assert.deepEqual(started, [], 'nothing runs by being dispatched')
  await mill.work(endless, { concurrency: 50, keeper: false })
  await all.promise
  for (const listed of ALL) assert.equal((await dispatcher.dispatch({ type: listed, data: {} })).status, 'enqueued')
  assert.equal((await mill.jobs({ state: 'completed' })).length, 0)
})

describe('options under their own names', () => {
  /** The order in which jobs with these options run. */
  async function orderOf(all: readonly JobOptions[]): Promise<readonly unknown[]> {
    const order: unknown[] = []
    await using stage = await openForTest()
    const job = defineJob({ ...specOf(type), run: ({ payload }) => void order.push(payload) })
    const dispatcher = new JobDispatcher(stage.mill, [job])
    for (const options of all) await dispatcher.dispatch({ type, data: options.priority ?? null, options })
    await drain(stage.mill, [job])
    return order
  }

  // A38 X001
  test('priority: the higher the sooner, and 0 without one', async () => {
    assert.deepEqual(await orderOf([{ priority: 1 }, {}, { priority: 15 }, { priority: 5 }]), [15, 5, 1, null])
    assert.deepEqual(await orderOf([{}, { priority: 0 }]), [null, 0], 'the same, so in their order')
  })

  // A39
  test('delay: milliseconds before it may start', async () => {
    await using stage = await openForTest()
    const { mill, clock } = stage
    const job = defineJob({ ...specOf(type), run: () => clock.nowMs() })
    const receipt = await new JobDispatcher(mill, [job]).dispatch({ type, data: null, options: { delay: 500 } })
    await clock.advance(499)
    assert.equal((await drain(mill, [job])).complete, 0)
    await clock.advance(1)
    assert.equal((await drain(mill, [job])).complete, 1)
    const view = await settled(mill, receipt)
    assert.equal(view.result, view.createdAtMs + 500)
  })

  /** The gaps between the starts of a job that always fails. */
  async function gapsOf(options: JobOptions): Promise<readonly number[]> {
    await using stage = await openForTest()
    const { mill, clock } = stage
    const starts: number[] = []
    const job = defineJob({
      ...specOf(type),
      run: () => {
        starts.push(clock.nowMs())
        throw new Error('again')
      },
    })
    const receipt = await new JobDispatcher(mill, [job]).dispatch({ type, data: null, options })
    await mill.work([job], { keeper: false })
    for (let step = 0; (await mill.job(receipt.id))?.state !== 'dead_letter'; step += 1) {
      assert.ok(step < 100)
      await clock.advance(100)
    }
    return starts.slice(1).map((start, index) => start - (starts[index] ?? 0))
  }

  // A40 A42
  test('attempts and backoff: how often, and how far apart', async () => {
    assert.deepEqual(await gapsOf({ backoff: { type: 'fixed', delay: 300 } }), [300, 300])
    assert.deepEqual(await gapsOf({ attempts: 4, backoff: { type: 'exponential', delay: 100 } }), [100, 200, 400])
    assert.deepEqual(await gapsOf({ attempts: 1 }), [])
  })

  // A43 X060
  test('timeout: a start that takes longer is aborted and counts as failed', async () => {
    await using stage = await openForTest()
    const { mill, clock } = stage
    const job = defineJob({ ...specOf(type), run: () => new Promise(() => {}) })
    const options = { timeout: 200, attempts: 1 }
    const receipt = await new JobDispatcher(mill, [job]).dispatch({ type, data: null, options })
    const started = mill.events.next('job.started')
    await mill.work([job], { keeper: false })
    await started
    await clock.advance(200)
    const view = await settled(mill, receipt)
    assert.deepEqual([view.state, view.error?.code, view.attempt], ['dead_letter', 'ERR_JOB_TIMEOUT', 1])
  })

  // A44 A45
  test('removeOnComplete and removeOnFail: how many stay', async () => {
    for (const [remove, left] of [
      [5, 5],
      [true, 0],
      [false, 10],
    ] as const) {
      await using stage = await openForTest()
      const { mill } = stage
      const job = defineJob({
        ...specOf(type),
        run: ({ payload }) => {
          if (payload === 'bad') throw new Error('no')
        },
      })
      const dispatcher = new JobDispatcher(mill, [job])
      const options = { removeOnComplete: remove, removeOnFail: remove, attempts: 1 }
      for (const data of ['good', 'bad']) await dispatcher.dispatchMany({ type, data: Array(10).fill(data), options })
      await drain(mill, [job])
      assert.equal((await mill.jobs({ state: 'completed' })).length, left)
      assert.equal((await mill.jobs({ state: 'dead_letter' })).length, left)
    }
  })

  // X026
  test('idempotencyKey: one live job', async () => {
    await using stage = await openForTest()
    const dispatcher = new JobDispatcher(stage.mill, [type])
    const options = { idempotencyKey: 'sync-7' }
    const first = await dispatcher.dispatch({ type, data: 1, options })
    const second = await dispatcher.dispatch({ type, data: 2, options })
    assert.deepEqual([second.id, second.status], [first.id, 'duplicate'])
  })

  const wrong: readonly (readonly [object, RegExp])[] = [
    [{ priority: 16 }, /the urgency is 16/],
    [{ priority: -1 }, /the urgency is -1/],
    [{ priority: 'high' }, /the urgency is high/],
    [{ delay: -1 }, /'delay'/],
    [{ attempts: 0 }, /'attempts' is 0/],
    [{ backoff: { type: 'linear', delay: 5 } }, /'backoff.type' is 'linear'; give 'exponential' or 'fixed'/],
    [{ backoff: { type: 'fixed', delay: -5 } }, /'backoff.delay' is -5/],
    [{ backoff: { type: 'exponential', delay: 3_600_001 } }, /'backoff.delay' is 3600001; .* to 3600000/],
    [{ backoff: { type: 'fixed' } }, /'backoff.delay' is undefined/],
    [{ backoff: 'fixed' }, /'backoff' is not an object/],
    [{ backoff: null }, /'backoff' is not an object/],
    [{ timeout: 0 }, /'timeout' is 0/],
    [{ timeout: 'soon' }, /'timeout'/],
    [{ removeOnComplete: -1 }, /'removeOnComplete' is -1/],
    [{ removeOnFail: 1.5 }, /'removeOnFail' is 1.5/],
    [{ limiter: { max: 1, duration: 1 } }, /'limiter' is not an option of a job; it belongs to a worker/],
    [{ tz: 'UTC' }, /'tz' is not an option of a job; it belongs to a schedule/],
    [{ timezone: 'UTC' }, /it belongs to a schedule/],
    [{ lifo: true }, /'lifo' is not an option of a job; give one of priority, delay/],
    [{ constructor: 1 }, /'constructor' is not an option/],
  ]
  // A41
  for (const [options, message] of wrong) {
    test(`${JSON.stringify(options)} is refused and nothing is stored`, async () => {
      await using stage = await openForTest()
      const dispatcher = new JobDispatcher(stage.mill, [type])
      const refused = { code: 'ERR_OPTION_INVALID', message }
      await assert.rejects(dispatcher.dispatch({ type, data: null, options }), refused)
      await assert.rejects(dispatcher.dispatchMany({ type, data: [null], options }), refused)
      assert.deepEqual(await stage.mill.jobs(), [])
    })
  }

  // A45 X013
  test('dead letters of a critical type are not removed by themselves', async () => {
    await using stage = await openForTest()
    const dispatcher = new JobDispatcher(stage.mill, ['data-deletion'])
    const config = { type: 'data-deletion', data: null, options: { removeOnFail: true } } as const
    await assert.rejects(dispatcher.dispatch(config), { code: 'ERR_OPTION_INVALID', message: /critical/ })
  })
})

describe('the tenant', () => {
  const tenant = { orgId: 'acme', workspaceId: 'w1' }

  // A46
  test('is what the handler receives, and needs an orgId', async () => {
    await using stage = await openForTest()
    const job = defineJob({ ...specOf(type), run: ({ job: { tenant: own } }) => own })
    const dispatcher = new JobDispatcher(stage.mill, [job])
    const receipt = await dispatcher.dispatch({ type, data: null, tenant })
    const bad = { workspaceId: 'w1' } as unknown as typeof tenant
    await assert.rejects(dispatcher.dispatch({ type, data: null, tenant: bad }), { code: 'ERR_OPTION_INVALID' })
    const misspelt = { type, data: [null], tenat: tenant } as const
    await assert.rejects(dispatcher.dispatch(misspelt), /did you mean 'tenant'/)
    await assert.rejects(dispatcher.dispatchMany(misspelt), /did you mean 'tenant'/)
    await drain(stage.mill, [job])
    assert.deepEqual((await stage.mill.job(receipt.id))?.result, tenant)
  })

  // X033
  test('is moved out of the data, where older producers put it', async () => {
    await using stage = await openForTest()
    const { mill } = stage
    const dispatcher = new JobDispatcher(mill, [type])
    const data = { channel: 7, tenantContext: tenant }
    const stored = async (id: string) => {
      const view = (await mill.job(id)) ?? assert.fail()
      return [JSON.parse(view.payload), view.tenant]
    }
    const moved = await dispatcher.dispatch({ type, data })
    assert.deepEqual(await stored(moved.id), [{ channel: 7 }, tenant])
    const both = await dispatcher.dispatch({ type, data, tenant })
    assert.deepEqual(await stored(both.id), [{ channel: 7 }, tenant])
    const none = await dispatcher.dispatch({ type, data: { channel: 7, tenantContext: undefined } })
    assert.deepEqual(await stored(none.id), [{ channel: 7 }, null])
    const many = await dispatcher.dispatchMany({ type, data: [data, data] })
    for (const { id } of many) assert.deepEqual(await stored(id), [{ channel: 7 }, tenant])

    const refused = { code: 'ERR_OPTION_INVALID', message: /different tenants/ }
    await assert.rejects(dispatcher.dispatch({ type, data, tenant: { orgId: 'other' } }), refused)
    await assert.rejects(dispatcher.dispatchMany({ type, data: [data, { channel: 8 }] }), refused)
    await assert.rejects(dispatcher.dispatch({ type, data: { tenantContext: 'acme' } }), { code: 'ERR_OPTION_INVALID' })
  })
})
