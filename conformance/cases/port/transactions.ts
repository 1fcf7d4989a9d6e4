import assert from 'node:assert/strict'
import type { CaseFile } from '../../case.ts'
import type { OwnTransaction } from '../../harness.ts'
import { keys, need, transactions } from '../../needs.ts'
import { idsOf, never, type Stage } from '../../stage.ts'

async function begin(stage: Stage): Promise<OwnTransaction> {
  assert.ok(stage.harness.transaction, 'the engine joins transactions, so its harness must offer one')
  return stage.harness.transaction()
}

export const transactionalEnqueue: CaseFile = {
  level: 'port',
  concept: 'Enqueue within a transaction of the user’s own',
  cases: [
    {
      name: 'a job enqueued within a transaction commits with the user’s own rows',
      guarantees: ['I1'],
      ...need(transactions),
      async run(stage) {
        const transaction = await begin(stage)
        await transaction.note('paid')
        const jobs = stage.jobs(2)
        const receipts = await stage.engine.enqueue(jobs, transaction.within)
        assert.deepEqual(
          receipts,
          jobs.map(({ id }) => ({ id, status: 'enqueued' })),
        )
        await transaction.commit()
        assert.deepEqual(await transaction.notes(), ['paid'])
        assert.deepEqual(
          idsOf(await stage.take(await stage.consume(), 5)),
          jobs.map(({ id }) => id),
        )
      },
    },
    {
      name: 'a job enqueued within a transaction is gone when that rolls back',
      guarantees: ['I1'],
      ...need(transactions),
      async run(stage) {
        const transaction = await begin(stage)
        await transaction.note('paid')
        await stage.engine.enqueue(stage.jobs(2), transaction.within)
        await transaction.rollback()
        assert.deepEqual(await transaction.notes(), [])
        await stage.expectCounts({})
        await stage.none(await stage.consume(), 'a rolled-back job was handed out')
      },
    },
    {
      name: 'nobody sees a job before the transaction commits',
      guarantees: ['I1'],
      ...need(transactions),
      async run(stage) {
        const transaction = await begin(stage)
        await stage.engine.enqueue([stage.job()], transaction.within)
        await stage.expectCounts({})
        await transaction.commit()
        await stage.expectCounts({ ready: 1 })
      },
    },
    {
      name: 'a waiting claim receives the job soon after the commit',
      guarantees: ['I6'],
      ...need(transactions),
      async run(stage) {
        const claim = (await stage.consume()).claim({ max: 1, waitMs: 60_000, signal: never })
        const transaction = await begin(stage)
        const job = stage.job()
        await stage.engine.enqueue([job], transaction.within)
        await transaction.commit()
        assert.deepEqual(idsOf(await stage.within(1_200, claim, 'the claim')), [job.id])
      },
    },
    {
      name: 'a key taken within a transaction that rolls back is free again',
      guarantees: ['I7'],
      ...need(transactions, keys),
      async run(stage) {
        const transaction = await begin(stage)
        await stage.engine.enqueue([stage.job({ key: 'k' })], transaction.within)
        await transaction.rollback()
        assert.equal((await stage.put({ key: 'k' })).receipt.status, 'enqueued')
      },
    },
    {
      name: 'a duplicate inside a transaction leaves the transaction usable',
      guarantees: ['I7'],
      ...need(transactions, keys),
      async run(stage) {
        const { id } = await stage.put({ key: 'k' })
        const transaction = await begin(stage)
        await transaction.note('before')
        const receipts = await stage.engine.enqueue([stage.job({ key: 'k' })], transaction.within)
        assert.deepEqual(receipts, [{ id, status: 'duplicate' }])
        await transaction.note('after')
        await transaction.commit()
        assert.deepEqual(await transaction.notes(), ['before', 'after'])
        await stage.expectCounts({ ready: 1 })
      },
    },
  ],
}
