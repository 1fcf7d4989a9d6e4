import assert from 'node:assert/strict'
import type { Controls, Engine } from '../../../src/engine/engine.ts'
import type { Lost } from '../../../src/engine/outcome.ts'
import type { CaseFile } from '../../case.ts'
import { cancellation, DELAY_MS, delay, inspection, latest, need } from '../../needs.ts'
import { complete, dead, idsOf } from '../../stage.ts'

const by = { who: 'suite', reason: 'test' }

function controls(engine: Engine): Controls {
  assert.ok(engine.controls, 'the engine declares cancellation and has no controls')
  return engine.controls
}

/** How soon the holder of a cancelled job hears of it when nobody renews. */
const NOTICE_MS = 2_000

export const cancelling: CaseFile = {
  level: 'port',
  concept: 'Cancel',
  cases: [
    {
      name: 'a cancelled waiting job is never handed out',
      guarantees: ['I1'],
      ...need(cancellation, inspection),
      async run(stage) {
        const { id } = await stage.put()
        assert.equal(await controls(stage.engine).cancel(id, by), true)
        await stage.none(await stage.consume(), 'a cancelled job was handed out')
        await stage.expectCounts({})
        const view = await stage.view(id)
        assert.equal(view.state, 'cancelled')
        assert.equal(await controls(stage.engine).cancel(id, by), false, 'cancelled twice')
      },
    },
    {
      name: 'a job that is due later can be cancelled',
      guarantees: ['I1'],
      ...need(cancellation, delay),
      async run(stage) {
        const { id } = await stage.put({ delayMs: DELAY_MS })
        assert.equal(await controls(stage.engine).cancel(id, by), true)
        await stage.harness.advance(DELAY_MS + 1)
        await stage.none(await stage.consume(), 'a cancelled job was handed out when it came due')
      },
    },
    {
      name: 'the holder of a cancelled job is told, also when another view cancels',
      guarantees: ['I3'],
      ...need(cancellation),
      async run(stage) {
        const { id } = await stage.put()
        const consumer = await stage.consume()
        const lease = await stage.one(consumer)
        const heard = Promise.withResolvers<Lost>()
        consumer.listen({ onLost: heard.resolve })
        assert.equal(await controls(await stage.other()).cancel(id, by), true)
        const lost = await stage.within(NOTICE_MS, heard.promise, 'the notice of the cancellation')
        assert.deepEqual([lost.reason, lost.lease.token], ['cancelled', lease.token])
      },
    },
    {
      name: 'a holder is told of a cancellation once, and not after it unsubscribed',
      guarantees: ['I3'],
      ...need(cancellation),
      async run(stage) {
        const consumer = await stage.consume()
        const heard: string[] = []
        const off = consumer.listen({ onLost: ({ lease }) => heard.push(lease.job.id) })
        const one = await stage.put()
        await stage.one(consumer)
        await controls(stage.engine).cancel(one.id, by)
        await stage.within(
          NOTICE_MS,
          stage.until(NOTICE_MS, () => heard.length > 0, 'the notice'),
          'the notice',
        )
        off()
        const two = await stage.put()
        await stage.one(consumer)
        await controls(stage.engine).cancel(two.id, by)
        await stage.harness.advance(NOTICE_MS)
        assert.deepEqual(heard, [one.id])
      },
    },
    {
      name: 'a cancelled holder can neither renew, report nor settle, and hears why',
      guarantees: ['I3'],
      ...need(cancellation, inspection),
      async run(stage) {
        const { id } = await stage.put()
        const consumer = await stage.consume()
        const lease = await stage.one(consumer)
        assert.equal(await controls(await stage.other()).cancel(id, by), true)
        const lost = await consumer.renew([lease], stage.leaseMs)
        assert.deepEqual(
          lost.map(({ reason }) => reason),
          ['cancelled'],
        )
        assert.equal(await consumer.report(lease, '1'), false)
        assert.equal((await stage.refused(consumer, lease, complete)).reason, 'cancelled')
        const view = await stage.view(id)
        assert.deepEqual([view.state, view.result, view.leaseOwner], ['cancelled', null, null])
        await stage.expectCounts({})
      },
    },
    {
      name: 'a finished or unknown job cannot be cancelled',
      guarantees: ['I1'],
      ...need(cancellation),
      async run(stage) {
        const [done, buried] = [await stage.put(), await stage.put()]
        const consumer = await stage.consume()
        for (const outcome of [complete, dead]) await stage.settle(consumer, await stage.one(consumer), outcome)
        assert.equal(await controls(stage.engine).cancel(done.id, by), false, 'a completed job')
        assert.equal(await controls(stage.engine).cancel(buried.id, by), false, 'a dead letter')
        assert.equal(await controls(stage.engine).cancel('01ARZ3NDEKTSV4RRFFQ69G5FAV', by), false, 'an unknown job')
        await stage.expectCounts({ completed: 1, dead: 1 })
      },
    },
    {
      // X142
      name: 'cancelling the running version of a latest key lets the next one start',
      guarantees: ['I4'],
      ...need(cancellation, latest),
      async run(stage) {
        const running = await stage.put({ latest: { key: 'k', seq: null } })
        const consumer = await stage.consume()
        await stage.one(consumer)
        const next = await stage.put({ latest: { key: 'k', seq: null } })
        assert.equal(await controls(stage.engine).cancel(running.id, by), true)
        assert.deepEqual(idsOf(await stage.take(consumer, 5)), [next.id])
      },
    },
  ],
}
