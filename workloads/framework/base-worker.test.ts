import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { z } from 'zod'
import { currentTenant } from '../../src/index.ts'
import { drain, openForTest } from '../../src/testing/index.ts'
import { BaseWorker } from './index.ts'
import { Told } from './rig.ts'

describe('a worker as a class', () => {
  // A54
  test('runs the jobs of its own type only, and returns what process returns', async () => {
    await using stage = await openForTest()
    const { mill } = stage
    const worker = new Told((data) => ({ got: data }))
    const other = new Told(() => null, {}, {}, 'quota-check')
    const own = await mill.enqueue(worker.definition, { channel: 7 })
    const foreign = await mill.enqueue(other.definition, null)
    assert.equal((await drain(mill, [worker.definition])).complete, 1)
    assert.deepEqual((await mill.job(own.id))?.result, { got: { channel: 7 } })
    assert.equal((await mill.job(foreign.id))?.state, 'queued')
    assert.deepEqual(other.calls, [])
  })

  // A54
  test('has the concurrency, the limiter and the options it is given, and its type has the rest', () => {
    const config = { concurrency: 20, limiter: { max: 100, duration: 1_000 }, options: { attempts: 4 } }
    const { definition } = new Told(() => null, config, {}, 'webhook-dispatch')
    assert.partialDeepStrictEqual(definition, {
      type: 'webhook-dispatch',
      concurrency: 20,
      limit: { max: 100, perMs: 1_000 },
      attempts: 4,
      priority: 1,
      timeoutMs: 30_000,
      critical: true,
    })
    const own = new Told(() => null, { options: { priority: 15 } }, {}, 'send-fax').definition
    assert.partialDeepStrictEqual(own, { type: 'send-fax', priority: 1, attempts: 3, concurrency: null, limit: null })
  })

  // A54
  test('refuses a configuration that means nothing', () => {
    const wrong: readonly (readonly [object, RegExp])[] = [
      [{ concurrency: 0 }, /'concurrency' is 0/],
      [{ limiter: { max: 0, duration: 1_000 } }, /'limiter' needs/],
      [{ limiter: { max: 5 } }, /'limiter' needs/],
      [
        { options: { limiter: { max: 1, duration: 1 } } },
        /'limiter' is not an option of a job; it belongs to a worker/,
      ],
      [{ options: { delay: 5 } }, /'delay' belongs to one job/],
    ]
    for (const [config, message] of wrong) {
      for (const type of ['slack-sync', 'send-fax']) {
        const worker = new Told(() => null, config, {}, type)
        assert.throws(() => worker.definition, { code: 'ERR_OPTION_INVALID', message })
      }
    }
  })

  // A54
  test('runs at most so many at once', async () => {
    await using stage = await openForTest()
    let running = 0
    let most = 0
    const worker = new Told(
      async () => {
        running += 1
        most = Math.max(most, running)
        await new Promise((resolve) => setImmediate(resolve))
        running -= 1
      },
      { concurrency: 2 },
    )
    await stage.mill.enqueueMany(worker.definition, Array(8).fill(null))
    await drain(stage.mill, [worker.definition], { concurrency: 50 })
    assert.equal(most, 2)
  })

  // A75
  test('starts at most so many in any window of its limiter', async () => {
    await using stage = await openForTest()
    const { mill, clock } = stage
    const starts: number[] = []
    const worker = new Told(() => void starts.push(clock.nowMs()), { limiter: { max: 10, duration: 1_000 } })
    await mill.enqueueMany(worker.definition, Array(25).fill(null))
    await mill.work([worker.definition], { concurrency: 50, keeper: false })
    await mill.work([worker.definition], { concurrency: 50, keeper: false })
    await clock.advance('4s')
    assert.equal(starts.length, 25)
    for (const start of starts) {
      assert.ok(starts.filter((each) => each >= start && each < start + 1_000).length <= 10)
    }
  })

  // A57
  test('without process neither compiles nor is made', () => {
    // @ts-expect-error: 'process' is abstract
    class Idle extends BaseWorker {}
    assert.throws(() => new Idle('slack-sync'), { code: 'ERR_OPTION_INVALID', message: /implement process/ })
  })

  test('checks its data by its schema, and is enqueued with what that takes', async () => {
    const payload = z.object({ at: z.string().transform((text) => text.length) })
    class Typed extends BaseWorker<{ at: number }, number, { at: string }> {
      constructor() {
        super('slack-sync', { payload })
      }
      process({ at }: { at: number }): number {
        return at
      }
    }
    await using stage = await openForTest()
    const { definition } = new Typed()
    const receipt = await stage.mill.enqueue(definition, { at: 'noon' })
    await drain(stage.mill, [definition])
    assert.equal(await stage.mill.result(receipt), 4)
    // @ts-expect-error: the wrong type is refused by the compiler, too
    await assert.rejects(stage.mill.enqueue(definition, { at: 7 }), { code: 'ERR_PAYLOAD_INVALID' })
  })
})

// A60 X032
test('the tenant of a job is known deep below process, and to no other job', async () => {
  const seen = new Map<unknown, unknown>()
  const deep = async (): Promise<unknown> => {
    await new Promise((resolve) => setImmediate(resolve))
    return currentTenant()
  }
  class Tenants extends BaseWorker<number> {
    async process(data: number): Promise<void> {
      const below = await deep()
      assert.deepEqual(this.tenant, below)
      seen.set(data, below)
    }
  }
  await using stage = await openForTest()
  const { definition } = new Tenants('slack-sync')
  await stage.mill.enqueue(definition, 1, { tenant: { orgId: 'acme' } })
  await stage.mill.enqueue(definition, 2)
  await stage.mill.enqueue(definition, 3, { tenant: { orgId: 'other', workspaceId: 'w' } })
  assert.equal((await drain(stage.mill, [definition], { concurrency: 3 })).complete, 3)
  assert.deepEqual(
    seen,
    new Map<unknown, unknown>([
      [1, { orgId: 'acme' }],
      [2, null],
      [3, { orgId: 'other', workspaceId: 'w' }],
    ]),
  )
})
