import type { CaseFile } from '../../case.ts'
import { DELAY_MS, delay, latest, need } from '../../needs.ts'
import { complete, dead, first, release, retry } from '../../stage.ts'

export const counting: CaseFile = {
  level: 'port',
  concept: 'Counts',
  cases: [
    {
      // B142 B144 B147
      name: 'jobs are counted by what they are doing now',
      guarantees: ['I1'],
      async run(stage) {
        await stage.engine.enqueue(stage.jobs(6))
        const consumer = await stage.consume()
        const held = await stage.take(consumer, 5)
        const outcomes = [complete, dead, release(), retry()]
        for (const [index, outcome] of outcomes.entries())
          await stage.settle(consumer, first(held.slice(index)), outcome)
        await stage.expectCounts({ ready: 3, inProgress: 1, completed: 1, dead: 1 })
      },
    },
    {
      name: 'a job due later is delayed, and ready when its time has come',
      guarantees: ['I1'],
      ...need(delay),
      async run(stage) {
        await stage.put({ delayMs: DELAY_MS })
        await stage.put()
        await stage.expectCounts({ ready: 1, delayed: 1 })
        await stage.harness.advance(DELAY_MS + 1)
        await stage.expectCounts({ ready: 2 })
      },
    },
    {
      name: 'a version that waits for an older one of its latest key is due, so it counts as ready',
      guarantees: ['I1'],
      ...need(latest),
      async run(stage) {
        await stage.put({ latest: { key: 'k', seq: null } })
        await stage.one(await stage.consume())
        await stage.put({ latest: { key: 'k', seq: null } })
        await stage.expectCounts({ ready: 1, inProgress: 1 })
      },
    },
    {
      name: 'every type is counted on its own, and every view sees the same',
      guarantees: ['I1'],
      async run(stage) {
        const [a, b] = [`${stage.type}-a`, `${stage.type}-b`]
        await stage.engine.enqueue([...stage.jobs(2, { type: a }), ...stage.jobs(3, { type: b })])
        await stage.expectCounts({ ready: 2 }, a)
        await stage.expectCounts({ ready: 3 }, b)
        await stage.expectCounts({})
        const rival = await stage.other()
        const seen = await rival.counts()
        if (seen[a]?.ready !== 2 || seen[b]?.ready !== 3) throw new Error('another view counts differently')
      },
    },
  ],
}
