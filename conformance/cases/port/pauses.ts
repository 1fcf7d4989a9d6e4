import assert from 'node:assert/strict'
import { pausesOf } from '../../../src/engine/capability-checks.ts'
import { stopName } from '../../../src/engine/pauses.ts'
import type { CaseFile } from '../../case.ts'
import { need } from '../../needs.ts'
import { pausing } from '../../operations.ts'

const by = { who: 'ann', reason: 'the provider is "down"' }

export const pausedTypes: CaseFile = {
  level: 'port',
  concept: 'Pausing',
  cases: [
    {
      name: 'a pause is seen by every view: who, why and since when, by type',
      guarantees: ['I12'],
      ...need(pausing),
      async run(stage) {
        const here = pausesOf(stage.engine)
        assert.deepEqual(await here.list(), [])
        const [one, two] = [`${stage.type}:a`, `${stage.type}:b`]
        assert.equal(await here.pause(two, by), true)
        assert.equal(await here.pause(one, { who: 'bob', reason: '' }), true)
        const since = { sinceMs: stage.nowMs }
        assert.deepEqual(await pausesOf(await stage.other()).list(), [
          { type: one, who: 'bob', reason: '', ...since },
          { type: two, ...by, ...since },
        ])
        // A worker that is asked to stop is beside them, and no type.
        const asked = stopName('worker', 7)
        assert.equal(await here.pause(asked, by), true)
        const there = pausesOf(await stage.other())
        assert.deepEqual([(await there.list()).length, (await there.all?.())?.length], [2, 3])
        assert.equal(await there.resume(asked), true)
      },
    },
    {
      name: 'the first pause stays as it was, and of two that pause or resume one succeeds',
      guarantees: ['I12'],
      ...need(pausing),
      async run(stage) {
        const [here, there] = [pausesOf(stage.engine), pausesOf(await stage.other())]
        const paused = await Promise.all([here.pause(stage.type, by), there.pause(stage.type, by)])
        assert.deepEqual(paused.sort(), [false, true])
        const before = await here.list()
        await stage.harness.advance(10)
        assert.equal(await there.pause(stage.type, { who: 'bob', reason: 'again' }), false)
        assert.deepEqual(await there.list(), before)
        const resumed = await Promise.all([here.resume(stage.type), there.resume(stage.type)])
        assert.deepEqual(resumed.sort(), [false, true])
        assert.deepEqual(await here.list(), [])
      },
    },
    {
      name: 'a pause changes no job, and what is claimed all the same is handed out',
      guarantees: ['I12'],
      ...need(pausing),
      async run(stage) {
        await stage.put()
        await pausesOf(stage.engine).pause(stage.type, by)
        await stage.put()
        await stage.expectCounts({ ready: 2 })
        const consumer = await stage.consume()
        assert.deepEqual(await stage.take(consumer, 5, { perType: { [stage.type]: 0 } }), [])
        assert.equal((await stage.take(consumer, 5)).length, 2)
      },
    },
  ],
}
