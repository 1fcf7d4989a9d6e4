import assert from 'node:assert/strict'
import type { CaseFile } from '../../case.ts'
import { inspection, need } from '../../needs.ts'
import { sharing } from '../../partitions.ts'
import { complete, release, retry } from '../../stage.ts'

export const attempts: CaseFile = {
  level: 'port',
  concept: 'Counting attempts',
  cases: [
    {
      // B93 B179
      name: 'every start counts one attempt',
      guarantees: ['I2', 'I5'],
      async run(stage) {
        await stage.put({ attempts: 10 })
        const consumer = await stage.consume()
        for (const expected of [1, 2, 3, 4]) {
          const lease = await stage.one(consumer)
          assert.equal(lease.attempt, expected)
          await stage.settle(consumer, lease, retry())
        }
      },
    },
    {
      // X003
      name: 'a release gives the attempt back, as often as it happens',
      guarantees: ['I2'],
      async run(stage) {
        await stage.put()
        const consumer = await stage.consume()
        await stage.settle(consumer, await stage.one(consumer), retry())
        for (let turn = 0; turn < 4; turn += 1) {
          const lease = await stage.one(consumer)
          assert.equal(lease.attempt, 2, 'a release used an attempt')
          await stage.settle(consumer, lease, release())
        }
        assert.equal((await stage.one(consumer)).attempt, 2)
      },
    },
    {
      name: 'attempts are known to the next holder, whichever view it has',
      guarantees: ['I2', 'I5'],
      ...need(sharing),
      async run(stage) {
        await stage.put()
        const consumer = await stage.consume()
        await stage.settle(consumer, await stage.one(consumer), retry())
        const rival = await stage.consume({ on: await stage.other() })
        assert.equal((await stage.one(rival)).attempt, 2)
      },
    },
    {
      name: 'each lost lease counts once, however often it was reaped',
      guarantees: ['I2', 'I5'],
      async run(stage) {
        await stage.put({ attempts: 10 })
        const consumer = await stage.consume()
        for (const expected of [1, 2, 3]) {
          const lease = await stage.one(consumer)
          assert.equal(lease.attempt, expected)
          await stage.recover(lease)
        }
        assert.equal((await stage.one(consumer)).attempt, 4)
      },
    },
    {
      name: 'the view of a job shows how often it was started',
      guarantees: ['I2'],
      ...need(inspection),
      async run(stage) {
        const { id } = await stage.put()
        assert.equal((await stage.view(id)).attempt, 0)
        const consumer = await stage.consume()
        const lease = await stage.one(consumer)
        assert.equal((await stage.view(id)).attempt, 1)
        await stage.settle(consumer, lease, release())
        assert.equal((await stage.view(id)).attempt, 0)
        await stage.settle(consumer, await stage.one(consumer), retry())
        await stage.settle(consumer, await stage.one(consumer), complete)
        assert.equal((await stage.view(id)).attempt, 2)
      },
    },
  ],
}
