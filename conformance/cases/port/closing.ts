import assert from 'node:assert/strict'
import type { CaseFile } from '../../case.ts'
import { need } from '../../needs.ts'
import { outliving } from '../../partitions.ts'
import { complete, idsOf, never, rejection } from '../../stage.ts'

export const closing: CaseFile = {
  level: 'port',
  concept: 'Opening and closing',
  cases: [
    {
      name: 'an open engine answers a ping',
      guarantees: ['I8'],
      async run(stage) {
        await stage.engine.ping()
        const { id } = await stage.put()
        assert.deepEqual(idsOf(await stage.take(await stage.consume())), [id])
      },
    },
    {
      name: 'closing twice is harmless',
      guarantees: ['I8'],
      async run(stage) {
        const rival = await stage.other()
        await stage.promptly(Promise.all([rival.close(), rival.close()]), 'closing twice')
        await rival.close()
      },
    },
    {
      name: 'a closed engine refuses every call with ERR_CLOSED',
      guarantees: ['I8', 'I10'],
      async run(stage) {
        const rival = await stage.other()
        const consumer = await stage.consume({ on: rival })
        const { id } = await stage.put()
        const lease = await stage.one(consumer)
        await rival.close()
        const wait = { waitMs: 0, signal: never }
        const act = { who: 'suite', reason: 'test' }
        const { inspector, lookup, controls, deadLetters } = stage.engine
        const calls: Readonly<Record<string, (() => Promise<unknown> | undefined) | undefined>> = {
          enqueue: () => rival.enqueue([stage.job()]),
          consume: () => rival.consume({ types: 'every', worker: 'suite:1:1' }),
          counts: () => rival.counts(),
          ping: () => rival.ping(),
          settle: () => consumer.settle([{ lease, outcome: complete }]),
          renew: () => consumer.renew([lease], stage.leaseMs),
          report: () => consumer.report(lease, '1'),
          find: inspector && (() => rival.inspector?.find([id])),
          list: inspector && (() => rival.inspector?.list({ limit: 1 })),
          look: lookup && (() => rival.lookup?.find([id])),
          latest: lookup && (() => rival.lookup?.list({ limit: 1 })),
          history: inspector && (() => rival.inspector?.history(id)),
          waitFor: inspector && (() => rival.inspector?.waitFor(id, wait)),
          diagnose: rival.diagnose && (() => rival.diagnose?.()),
          cancel: controls && (() => rival.controls?.cancel(id, act)),
          letters: deadLetters && (() => rival.deadLetters?.list({ limit: 1 })),
          requeue: deadLetters && (() => rival.deadLetters?.requeue([id], act)),
          discard: deadLetters && (() => rival.deadLetters?.discard([id], act)),
          undiscard: deadLetters && (() => rival.deadLetters?.undiscard([id], act)),
          remove: deadLetters && (() => rival.deadLetters?.remove([id], act)),
          audit: deadLetters && (() => rival.deadLetters?.audit({ limit: 1 })),
        }
        for (const [name, call] of Object.entries(calls)) {
          if (call === undefined) continue
          assert.equal(await rejection((async () => call())()), 'ERR_CLOSED', name)
        }
        await stage.expectCounts({ inProgress: 1 })
      },
    },
    {
      name: 'a consumer of a closed engine claims nothing and does not throw',
      guarantees: ['I8'],
      async run(stage) {
        const rival = await stage.other()
        const consumer = await stage.consume({ on: rival })
        await stage.put()
        await rival.close()
        assert.deepEqual(await stage.promptly(stage.take(consumer), 'the claim'), [])
        await stage.promptly(consumer.close(), 'closing the consumer')
        await stage.expectCounts({ ready: 1 })
      },
    },
    {
      name: 'closing one view leaves the others and their work alone',
      guarantees: ['I1', 'I8'],
      async run(stage) {
        const rival = await stage.other()
        await stage.put({}, rival)
        const consumer = await stage.consume()
        const lease = await stage.one(consumer)
        await rival.close()
        await stage.settle(consumer, lease, complete)
        await stage.put()
        await stage.expectCounts({ ready: 1, completed: 1 })
      },
    },
    {
      name: 'a lease that is held when its engine closes simply runs out',
      guarantees: ['I6', 'I8'],
      ...need(outliving),
      async run(stage) {
        const rival = await stage.other()
        await stage.put()
        await stage.one(await stage.consume({ on: rival }))
        await rival.close()
        await stage.expectCounts({ inProgress: 1 })
        await stage.none(await stage.consume(), 'closing gave a lease away')
      },
    },
  ],
}
