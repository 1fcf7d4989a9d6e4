import assert from 'node:assert/strict'
import type { CaseFile } from '../../case.ts'
import { inspection, need } from '../../needs.ts'
import { complete } from '../../stage.ts'

export const progress: CaseFile = {
  level: 'port',
  concept: 'Progress',
  cases: [
    {
      // A03
      name: 'the last reported progress is shown, in every view',
      guarantees: ['I2'],
      ...need(inspection),
      async run(stage) {
        const { id } = await stage.put()
        assert.equal((await stage.view(id)).progress, null)
        const consumer = await stage.consume()
        const lease = await stage.one(consumer)
        assert.equal(await consumer.report(lease, '{"phase":"half","percent":50}'), true)
        assert.equal(await consumer.report(lease, '{"phase":"more","percent":75}'), true)
        const rival = await stage.other()
        assert.deepEqual((await stage.view(id, rival)).progress, { phase: 'more', percent: 75 })
        await stage.settle(consumer, lease, complete)
        assert.deepEqual((await stage.view(id)).progress, { phase: 'more', percent: 75 })
      },
    },
    {
      name: 'progress that was refused leaves no trace',
      guarantees: ['I3'],
      ...need(inspection),
      async run(stage) {
        const { id } = await stage.put()
        const consumer = await stage.consume()
        const lease = await stage.one(consumer)
        await consumer.report(lease, '1')
        assert.equal(await consumer.report({ ...lease, token: 'forged' }, '2'), false)
        await stage.settle(consumer, lease, complete)
        assert.equal(await consumer.report(lease, '3'), false)
        assert.equal((await stage.view(id)).progress, 1)
      },
    },
  ],
}
