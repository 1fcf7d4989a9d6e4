import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { newJob, scene } from '../../../test/bullmq/scene.ts'

const never = new AbortController().signal
const types = [{ type: 'mail', leaseMs: 60_000 }]
const complete = { kind: 'complete', result: 'null', durationMs: 1 } as const

/** Six jobs, claimed in this order. `settled`: which of them one batch completes. */
const BATCHES: readonly { readonly name: string; readonly settled: readonly number[]; readonly lost?: number }[] = [
  { name: 'the first ones, in the order of their claims', settled: [0, 1, 2] },
  { name: 'the first ones, in another order', settled: [2, 0, 1] },
  { name: 'the last ones', settled: [3, 4, 5] },
  { name: 'some in between', settled: [1, 3] },
  { name: 'all', settled: [0, 1, 2, 3, 4, 5] },
  { name: 'one that another has by now', settled: [0, 1, 2], lost: 1 },
  { name: 'the first one, which another has by now', settled: [0, 1, 2], lost: 0 },
]

describe('a batch of completions', { timeout: 120_000 }, () => {
  for (const { name, settled, lost } of BATCHES)
    test(`takes exactly its own jobs out of the active ones: ${name}`, async (t) => {
      const { engine, queue, redis, prefix } = await scene(t)
      for (const n of [1, 2, 3]) await queue.add('welcome', { n })
      await engine.enqueue([newJob(), newJob(), newJob()])
      const consumer = await engine.consume({ types, worker: 'w' })
      const leases = await consumer.claim({ max: 6, waitMs: 0, signal: never })
      assert.equal(leases.length, 6)
      const ids = (await redis.lrange(`${prefix}:mail:active`, 0, -1)).toReversed()
      if (lost !== undefined) await redis.set(`${prefix}:mail:${ids[lost]}:lock`, 'another')
      const batch = settled.flatMap((at) => leases.slice(at, at + 1))
      const refused = await consumer.settle(batch.map((lease) => ({ lease, outcome: complete })))
      assert.deepEqual(
        refused.map(({ lease }) => lease),
        lost === undefined ? [] : leases.slice(lost, lost + 1),
      )
      const left = ids.filter((_, at) => !settled.includes(at) || at === lost)
      assert.deepEqual((await redis.lrange(`${prefix}:mail:active`, 0, -1)).toReversed(), left)
      const done = ids.filter((id) => !left.includes(id))
      assert.deepEqual((await redis.zrange(`${prefix}:mail:completed`, '0', '-1')).toSorted(), done.toSorted())
      const locks = await Promise.all(ids.map((id) => redis.exists(`${prefix}:mail:${id}:lock`)))
      assert.deepEqual(
        ids.filter((_, at) => locks[at] === 1),
        left,
      )
    })

  test('refuses the second of two completions of one start', async (t) => {
    const { engine, redis, prefix } = await scene(t)
    await engine.enqueue([newJob(), newJob()])
    const consumer = await engine.consume({ types, worker: 'w' })
    const [first] = await consumer.claim({ max: 2, waitMs: 0, signal: never })
    assert.ok(first)
    const twice = [first, first].map((lease) => ({ lease, outcome: complete }))
    assert.deepEqual(await consumer.settle(twice), [{ lease: first, reason: 'expired' }])
    assert.equal(await redis.llen(`${prefix}:mail:active`), 1)
  })

  test('changes nothing where another program spoilt a key of the queue', async (t) => {
    const { engine, redis, prefix } = await scene(t)
    await engine.enqueue([newJob(), newJob()])
    const consumer = await engine.consume({ types, worker: 'w' })
    const leases = await consumer.claim({ max: 2, waitMs: 0, signal: never })
    await redis.set(`${prefix}:mail:stalled`, 'no set')
    await assert.rejects(consumer.settle(leases.map((lease) => ({ lease, outcome: complete }))))
    assert.equal(await redis.llen(`${prefix}:mail:active`), 2)
    await redis.del(`${prefix}:mail:stalled`)
    assert.deepEqual(await consumer.settle(leases.map((lease) => ({ lease, outcome: complete }))), [])
  })
})
