import assert from 'node:assert/strict'
import type { CaseFile } from '../../case.ts'
import { deadLetters, inspection, need } from '../../needs.ts'
import { boom, complete, dead, release, retry } from '../../stage.ts'

export const histories: CaseFile = {
  level: 'port',
  concept: 'What the history says',
  cases: [
    {
      name: 'the detail of a line has one shape on every engine',
      guarantees: ['I9'],
      ...need(inspection, deadLetters),
      async run(stage) {
        const { id } = await stage.put({ attempts: 9 })
        const consumer = await stage.consume()
        for (const outcome of [retry(), release(), dead])
          await stage.settle(consumer, await stage.one(consumer), outcome)
        const by = { who: 'ann', reason: 'why' }
        await stage.engine.deadLetters?.discard([id], by)
        await stage.engine.deadLetters?.undiscard([id], by)
        await stage.engine.deadLetters?.requeue([id], by)
        await stage.settle(consumer, await stage.one(consumer), complete)
        const history = (await stage.engine.inspector?.history(id)) ?? []
        assert.deepEqual(
          history.map(({ name, detail }) => [name, detail]),
          [
            ['enqueued', null],
            ['started', null],
            ['failed', { error: boom }],
            ['retried', { delayMs: 0 }],
            ['started', null],
            ['released', { reason: 'staged', delayMs: 0 }],
            ['started', null],
            ['failed', { error: boom }],
            ['dead', null],
            ['discarded', by],
            ['dead', { ...by, undone: 'discarded' }],
            ['replayed', by],
            ['started', null],
            ['completed', { durationMs: 5 }],
          ],
        )
      },
    },
  ],
}
