import assert from 'node:assert/strict'
import type { JobFilter } from '../../../src/engine/engine.ts'
import type { CaseFile } from '../../case.ts'
import { cancellation, deadLetters, inspection, latest, need } from '../../needs.ts'
import { dead, type Stage } from '../../stage.ts'

const by = { who: 'suite', reason: 'test' }

const listed = async ({ engine, type }: Stage, filter: Partial<JobFilter>): Promise<readonly string[]> =>
  ((await engine.inspector?.list({ limit: 10, type, ...filter })) ?? []).map(({ id }) => id)

export const endedStates: CaseFile = {
  level: 'port',
  concept: 'States of jobs that were ended',
  cases: [
    {
      name: 'a cancelled, superseded or discarded job shows that word as its state and is not listed as a dead letter',
      guarantees: ['I9'],
      ...need(inspection, cancellation, latest, deadLetters),
      async run(stage) {
        const cancelled = await stage.put()
        assert.equal(await stage.engine.controls?.cancel(cancelled.id, by), true)
        const superseded = await stage.put({ latest: { key: 'k', seq: null } })
        const letter = await stage.put({ latest: { key: 'k', seq: null } })
        const discarded = await stage.put()
        const consumer = await stage.consume()
        for (let count = 0; count < 2; count += 1) await stage.settle(consumer, await stage.one(consumer), dead)
        assert.deepEqual(await stage.engine.deadLetters?.discard([discarded.id], by), [true])

        const shown = { cancelled, superseded, discarded, dead_letter: letter } as const
        for (const state of ['cancelled', 'superseded', 'discarded', 'dead_letter'] as const) {
          const { id } = shown[state]
          assert.equal((await stage.view(id)).state, state)
          assert.deepEqual(await listed(stage, { state }), [id], `the ${state} jobs of a type`)
          const all = (await stage.engine.inspector?.list({ limit: 10, state })) ?? []
          assert.deepEqual(
            all.map((job) => [job.id, job.state]),
            [[id, state]],
            `the ${state} jobs of all types`,
          )
          assert.deepEqual(await listed(stage, { state, before: id }), [])
        }
        assert.equal((await listed(stage, {})).length, 4)
        await stage.expectCounts({ dead: 1 })

        assert.deepEqual(await stage.engine.deadLetters?.undiscard([discarded.id], by), [true])
        assert.deepEqual(await listed(stage, { state: 'discarded' }), [])
        assert.deepEqual(await listed(stage, { state: 'dead_letter' }), [discarded.id, letter.id])
      },
    },
  ],
}
