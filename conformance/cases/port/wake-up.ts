import assert from 'node:assert/strict'
import type { CaseFile } from '../../case.ts'
import { DELAY_MS, delay, latest, need, RETRY_MS, retryDelay } from '../../needs.ts'
import { complete, first, idsOf, never, release, retry } from '../../stage.ts'

const LONG_MS = 60_000
/** How long a claim may sleep on after work has come in through another view. */
const NOTICE_MS = 1_200
const TYPES = 4
const ROUNDS = 12

export const wakingUp: CaseFile = {
  level: 'port',
  concept: 'Waking a waiting claim',
  cases: [
    {
      // C17 X009
      name: 'a waiting claim receives a job enqueued through the same view at once',
      guarantees: ['I6'],
      async run(stage) {
        const consumer = await stage.consume()
        const claim = consumer.claim({ max: 5, waitMs: LONG_MS, signal: never })
        await stage.harness.advance(50)
        const { id } = await stage.put()
        assert.deepEqual(idsOf(await stage.promptly(claim, 'the claim')), [id])
      },
    },
    {
      // X009
      name: 'a waiting claim receives a job enqueued through another view soon',
      guarantees: ['I6'],
      async run(stage) {
        const consumer = await stage.consume()
        const rival = await stage.other()
        const claim = consumer.claim({ max: 5, waitMs: LONG_MS, signal: never })
        await stage.harness.advance(50)
        const { id } = await stage.put({}, rival)
        assert.deepEqual(idsOf(await stage.within(NOTICE_MS, claim, 'the claim')), [id])
      },
    },
    {
      name: 'a job that comes right after a claim took all there was is received soon, whatever its type',
      guarantees: ['I6'],
      async run(stage) {
        const types = Array.from({ length: TYPES }, (_, index) => `${stage.type}-${index}`)
        const consumer = await stage.consume({ types })
        const rival = await stage.other()
        for (let round = 0; round < ROUNDS; round += 1) {
          const type = types[(round * 3) % TYPES]
          const claim = consumer.claim({ max: 5, waitMs: LONG_MS, signal: never })
          // Every other job comes while the claim still looks.
          if (round % 2 === 0) await stage.harness.advance(20)
          const { id } = await stage.put({ ...(type !== undefined && { type }) }, rival)
          const leases = await stage.within(NOTICE_MS, claim, `the claim of round ${round}`)
          assert.deepEqual(idsOf(leases), [id])
          await stage.settle(consumer, first(leases), complete)
        }
      },
    },
    {
      name: 'a waiting claim receives a delayed job when it comes due',
      guarantees: ['I6', 'I11'],
      ...need(delay),
      async run(stage) {
        const { id } = await stage.put({ delayMs: DELAY_MS })
        const consumer = await stage.consume()
        const claim = consumer.claim({ max: 5, waitMs: LONG_MS, signal: never })
        assert.deepEqual(idsOf(await stage.within(DELAY_MS + NOTICE_MS, claim, 'the claim')), [id])
      },
    },
    {
      name: 'a waiting claim receives a job that was released',
      guarantees: ['I6'],
      async run(stage) {
        const { id } = await stage.put()
        const consumer = await stage.consume()
        const lease = await stage.one(consumer)
        const claim = consumer.claim({ max: 5, waitMs: LONG_MS, signal: never })
        await stage.harness.advance(20)
        await stage.settle(consumer, lease, release())
        assert.deepEqual(idsOf(await stage.within(NOTICE_MS, claim, 'the claim')), [id])
      },
    },
    {
      name: 'a waiting claim receives a retry when its delay is over',
      guarantees: ['I6'],
      ...need(retryDelay),
      async run(stage) {
        await stage.put()
        const consumer = await stage.consume()
        const lease = await stage.one(consumer)
        const claim = consumer.claim({ max: 5, waitMs: LONG_MS, signal: never })
        await stage.harness.advance(20)
        await stage.settle(consumer, lease, retry(RETRY_MS))
        assert.equal(first(await stage.within(RETRY_MS + NOTICE_MS, claim, 'the claim')).attempt, 2)
      },
    },
    {
      name: 'a waiting claim receives the newer version when the older one is settled',
      guarantees: ['I4', 'I6'],
      ...need(latest),
      async run(stage) {
        await stage.put({ latest: { key: 'k', seq: null } })
        const consumer = await stage.consume()
        const old = await stage.one(consumer)
        const newer = await stage.put({ latest: { key: 'k', seq: null } })
        const claim = consumer.claim({ max: 5, waitMs: LONG_MS, signal: never })
        await stage.harness.advance(20)
        await stage.settle(consumer, old, complete)
        assert.deepEqual(idsOf(await stage.within(NOTICE_MS, claim, 'the claim')), [newer.id])
      },
    },
    {
      name: 'one job wakes many waiting claims and one of them receives it',
      guarantees: ['I4'],
      async run(stage) {
        const abort = new AbortController()
        const rival = await stage.other()
        const consumers = [await stage.consume(), await stage.consume(), await stage.consume({ on: rival })]
        const claims = consumers.map((consumer) => consumer.claim({ max: 5, waitMs: LONG_MS, signal: abort.signal }))
        await stage.harness.advance(50)
        const { id } = await stage.put()
        await stage.within(NOTICE_MS, Promise.race(claims), 'the first claim')
        await stage.harness.advance(50)
        abort.abort()
        const received = (await stage.promptly(Promise.all(claims), 'the end of the claims')).flat()
        assert.deepEqual(idsOf(received), [id])
      },
    },
    {
      name: 'a job of another type wakes nobody for good',
      guarantees: ['I1'],
      async run(stage) {
        const consumer = await stage.consume()
        const claim = consumer.claim({ max: 5, waitMs: LONG_MS, signal: never })
        await stage.harness.advance(20)
        await stage.put({ type: `${stage.type}-foreign` })
        await stage.harness.advance(100)
        const { id } = await stage.put()
        assert.deepEqual(idsOf(await stage.within(NOTICE_MS, claim, 'the claim')), [id])
      },
    },
  ],
}
