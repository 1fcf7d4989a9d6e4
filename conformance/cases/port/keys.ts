import assert from 'node:assert/strict'
import type { Outcome } from '../../../src/engine/outcome.ts'
import type { Case, CaseFile } from '../../case.ts'
import { cancellation, keys, need } from '../../needs.ts'
import { complete, dead, idsOf, release, retry } from '../../stage.ts'

/** X093: a key is held by a live job only. */
const freeing: readonly { readonly end: string; readonly outcome: Outcome }[] = [
  { end: 'completed', outcome: complete },
  { end: 'dead', outcome: dead },
]
const keeping: readonly { readonly turn: string; readonly outcome: Outcome }[] = [
  { turn: 'retry', outcome: retry() },
  { turn: 'release', outcome: release() },
]

const freed = freeing.map(
  ({ end, outcome }): Case => ({
    name: `a key can be used again once its job is ${end}`,
    guarantees: ['I7'],
    ...need(keys),
    async run(stage) {
      const firstJob = await stage.put({ key: 'k' })
      const consumer = await stage.consume()
      await stage.settle(consumer, await stage.one(consumer), outcome)
      const second = await stage.put({ key: 'k' })
      assert.deepEqual(second.receipt, { id: second.id, status: 'enqueued' })
      assert.notEqual(second.id, firstJob.id)
      assert.deepEqual(idsOf(await stage.take(consumer, 5)), [second.id])
    },
  }),
)

const kept = keeping.map(
  ({ turn, outcome }): Case => ({
    name: `a key stays taken through a ${turn}`,
    guarantees: ['I7'],
    ...need(keys),
    async run(stage) {
      const { id } = await stage.put({ key: 'k' })
      const consumer = await stage.consume()
      await stage.settle(consumer, await stage.one(consumer), outcome)
      assert.deepEqual((await stage.put({ key: 'k' })).receipt, { id, status: 'duplicate' })
      assert.deepEqual(idsOf(await stage.take(consumer, 5)), [id])
    },
  }),
)

export const idempotencyKeys: CaseFile = {
  level: 'port',
  concept: 'Idempotency keys',
  cases: [
    {
      // B106 B107 B177
      name: 'a second job of a live key is a duplicate with the first one’s id',
      guarantees: ['I7'],
      ...need(keys),
      async run(stage) {
        const { id, receipt } = await stage.put({ key: 'k', payload: '"first"' })
        assert.deepEqual(receipt, { id, status: 'enqueued' })
        assert.deepEqual((await stage.put({ key: 'k', payload: '"second"' })).receipt, { id, status: 'duplicate' })
        const leases = await stage.take(await stage.consume(), 5)
        assert.deepEqual(
          leases.map(({ job }) => [job.id, job.payload, job.key]),
          [[id, '"first"', 'k']],
        )
      },
    },
    {
      name: 'a running job keeps its key',
      guarantees: ['I7'],
      ...need(keys),
      async run(stage) {
        const { id } = await stage.put({ key: 'k' })
        const consumer = await stage.consume()
        await stage.one(consumer)
        assert.deepEqual((await stage.put({ key: 'k' })).receipt, { id, status: 'duplicate' })
        await stage.expectCounts({ inProgress: 1 })
      },
    },
    {
      name: 'different keys do not meet',
      guarantees: ['I7'],
      ...need(keys),
      async run(stage) {
        const receipts = await stage.engine.enqueue([
          stage.job({ key: 'a' }),
          stage.job({ key: 'A' }),
          stage.job({ key: 'a ' }),
        ])
        assert.deepEqual(
          receipts.map(({ status }) => status),
          ['enqueued', 'enqueued', 'enqueued'],
        )
      },
    },
    {
      name: 'two jobs of one key in one batch are one job',
      guarantees: ['I7'],
      ...need(keys),
      async run(stage) {
        const [one, two] = [stage.job({ key: 'k' }), stage.job({ key: 'k' })]
        assert.deepEqual(await stage.engine.enqueue([one, two]), [
          { id: one.id, status: 'enqueued' },
          { id: one.id, status: 'duplicate' },
        ])
        await stage.expectCounts({ ready: 1 })
      },
    },
    {
      name: 'of many simultaneous enqueues of a key through two views one is stored',
      guarantees: ['I7'],
      ...need(keys),
      async run(stage) {
        const views = [stage.engine, await stage.other()]
        const racing = Array.from({ length: 20 }, (_, index) => stage.put({ key: 'k' }, views[index % 2]))
        const receipts = (await Promise.all(racing)).map(({ receipt }) => receipt)
        assert.equal(receipts.filter(({ status }) => status === 'enqueued').length, 1)
        assert.equal(new Set(receipts.map(({ id }) => id)).size, 1)
        await stage.expectCounts({ ready: 1 })
      },
    },
    ...freed,
    ...kept,
    {
      name: 'a key stays taken while its job is recovered from a dead holder',
      guarantees: ['I7', 'I6'],
      ...need(keys),
      async run(stage) {
        const { id } = await stage.put({ key: 'k' })
        const consumer = await stage.consume()
        await stage.recover(await stage.one(consumer))
        assert.deepEqual((await stage.put({ key: 'k' })).receipt, { id, status: 'duplicate' })
      },
    },
    {
      name: 'a key can be used again once its job is cancelled',
      guarantees: ['I7'],
      ...need(keys, cancellation),
      async run(stage) {
        const { id } = await stage.put({ key: 'k' })
        assert.equal(await stage.engine.controls?.cancel(id, { who: 'suite', reason: 'test' }), true)
        const second = await stage.put({ key: 'k' })
        assert.deepEqual(second.receipt, { id: second.id, status: 'enqueued' })
      },
    },
  ],
}
