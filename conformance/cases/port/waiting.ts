import assert from 'node:assert/strict'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { CaseFile } from '../../case.ts'
import { complete, never } from '../../stage.ts'

const LONG_MS = 60_000

export const waiting: CaseFile = {
  level: 'port',
  concept: 'How a claim ends',
  cases: [
    {
      name: 'a waiting claim ends at once when aborted',
      guarantees: ['I8'],
      async run(stage) {
        const consumer = await stage.consume()
        const abort = new AbortController()
        const claim = consumer.claim({ max: 1, waitMs: LONG_MS, signal: abort.signal })
        await nextTurn()
        abort.abort()
        assert.deepEqual(await stage.promptly(claim, 'the end of an aborted claim'), [])
      },
    },
    {
      name: 'a claim whose signal is aborted already takes nothing',
      guarantees: ['I8', 'I1'],
      async run(stage) {
        await stage.put()
        const consumer = await stage.consume()
        const claim = consumer.claim({ max: 1, waitMs: LONG_MS, signal: AbortSignal.abort() })
        assert.deepEqual(await stage.promptly(claim, 'the end of an aborted claim'), [])
        await stage.expectCounts({ ready: 1 })
      },
    },
    {
      name: 'a job enqueued after an abort is not taken by the aborted claim',
      guarantees: ['I1', 'I4'],
      async run(stage) {
        const consumer = await stage.consume()
        const abort = new AbortController()
        const claim = consumer.claim({ max: 1, waitMs: LONG_MS, signal: abort.signal })
        await nextTurn()
        abort.abort()
        await stage.put()
        assert.deepEqual(await stage.promptly(claim, 'the end of an aborted claim'), [])
        await stage.expectCounts({ ready: 1 })
        await stage.one(consumer)
      },
    },
    {
      name: 'a waiting claim ends at once when its consumer closes',
      guarantees: ['I8'],
      async run(stage) {
        const consumer = await stage.consume()
        const claim = consumer.claim({ max: 1, waitMs: LONG_MS, signal: never })
        await nextTurn()
        await stage.promptly(consumer.close(), 'closing the consumer')
        assert.deepEqual(await stage.promptly(claim, 'the end of the claim'), [])
      },
    },
    {
      name: 'a waiting claim ends at once when its engine closes',
      guarantees: ['I8'],
      async run(stage) {
        const rival = await stage.other()
        const consumer = await stage.consume({ on: rival })
        const claim = consumer.claim({ max: 1, waitMs: LONG_MS, signal: never })
        await nextTurn()
        await stage.promptly(rival.close(), 'closing the engine')
        assert.deepEqual(await stage.promptly(claim, 'the end of the claim'), [])
      },
    },
    {
      name: 'a claim waits no longer than it was told',
      guarantees: ['I8'],
      async run(stage) {
        const consumer = await stage.consume()
        const claim = consumer.claim({ max: 1, waitMs: 300, signal: never })
        assert.deepEqual(await stage.within(600, claim, 'the time-out of the claim'), [])
        assert.deepEqual(await stage.promptly(stage.take(consumer), 'a claim that may not wait'), [])
      },
    },
    {
      name: 'a closed consumer hands out nothing, but what it holds can be settled',
      guarantees: ['I1', 'I8'],
      async run(stage) {
        await stage.engine.enqueue(stage.jobs(2))
        const consumer = await stage.consume()
        const lease = await stage.one(consumer)
        await consumer.close()
        await consumer.close()
        assert.deepEqual(
          await stage.promptly(consumer.claim({ max: 1, waitMs: LONG_MS, signal: never }), 'the claim'),
          [],
        )
        assert.deepEqual(await consumer.renew([lease], stage.leaseMs), [])
        await stage.settle(consumer, lease, complete)
        await stage.expectCounts({ ready: 1, completed: 1 })
      },
    },
  ],
}
