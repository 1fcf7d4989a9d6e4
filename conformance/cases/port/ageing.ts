import assert from 'node:assert/strict'
import type { NewJob } from '../../../src/job/job.ts'
import { systemClock } from '../../../src/time/clock.ts'
import { limits } from '../../bounds.ts'
import type { CaseFile } from '../../case.ts'
import { ageing, delay, dependencies, latest, need } from '../../needs.ts'
import { complete, first, idsOf, type Stage } from '../../stage.ts'

const MINUTE_MS = 60_000
const AGEING_MS = 10 * MINUTE_MS

/** A job that has been due for so many minutes. */
function waited(stage: Stage, priority: number, minutes: number, fields: Partial<NewJob> = {}): Promise<NewJob> {
  return stage.put({ priority, runAtMs: stage.nowMs - minutes * MINUTE_MS, ...fields })
}

export const ageingJobs: CaseFile = {
  level: 'port',
  concept: 'Ageing: jobs that wait gain priority',
  cases: [
    {
      // X119
      name: 'a job counts as one rank more urgent for each interval that it has waited',
      guarantees: ['I1'],
      ...need(ageing, delay),
      async run(stage) {
        const fresh = [1, 2, 3, 4, 5, 6, 7, 8, 9]
        for (const priority of fresh.toReversed()) await stage.put({ priority })
        await waited(stage, 10, 80)
        const leases = await stage.take(await stage.consume({ ageingMs: AGEING_MS }), 20)
        assert.deepEqual(
          leases.map(({ job }) => job.priority),
          [1, 10, 2, 3, 4, 5, 6, 7, 8, 9],
        )
      },
    },
    {
      // X119
      name: 'a job that has aged to the first rank goes before newer jobs of priority 1, and after older ones',
      guarantees: ['I1'],
      ...need(ageing, delay),
      async run(stage) {
        const newer = await stage.put({ priority: 1 })
        const second = await stage.put({ priority: 2 })
        const aged = await waited(stage, 10, 90)
        const older = await waited(stage, 1, 91)
        const consumer = await stage.consume({ ageingMs: AGEING_MS })
        const order: string[] = []
        for (let index = 0; index < 4; index += 1) order.push((await stage.one(consumer)).job.id)
        assert.deepEqual(
          order,
          [older, aged, newer, second].map(({ id }) => id),
        )
      },
    },
    {
      // X119
      name: 'without ageing priority is strict, however long a job has waited',
      guarantees: ['I1'],
      ...need(ageing, delay),
      async run(stage) {
        const aged = await waited(stage, 10, 100_000)
        const ninth = await stage.put({ priority: 9 })
        const urgent = await stage.put({ priority: 1 })
        assert.deepEqual(idsOf(await stage.take(await stage.consume(), 10)), [urgent.id, ninth.id, aged.id])
      },
    },
    {
      // X119
      name: 'a rank is gained when the interval is over, and not before',
      guarantees: ['I1'],
      ...need(ageing, delay),
      async run(stage) {
        const shortMs = stage.harness.clock === systemClock ? MINUTE_MS : 1
        const early = await stage.put({ priority: 6, runAtMs: stage.nowMs - AGEING_MS + shortMs })
        const fifth = await stage.put({ priority: 5 })
        const exact = await stage.put({ priority: 6, runAtMs: stage.nowMs - AGEING_MS })
        const leases = await stage.take(await stage.consume({ ageingMs: AGEING_MS }), 10)
        assert.deepEqual(idsOf(leases), [exact.id, fifth.id, early.id])
      },
    },
    {
      // X119
      name: 'jobs of one effective rank are claimed by due time, then arrival, over all types',
      guarantees: ['I1'],
      ...need(ageing, delay),
      async run(stage) {
        const other = `${stage.type}-other`
        const runAtMs = stage.nowMs - 12 * MINUTE_MS
        const jobs = [
          await waited(stage, 10, 55),
          await waited(stage, 8, 35, { type: other }),
          await waited(stage, 7, 25),
          await stage.put({ priority: 6, runAtMs, type: other }),
          await stage.put({ priority: 6, runAtMs }),
          await waited(stage, 5, 2),
        ]
        const consumer = await stage.consume({ types: [stage.type, other], ageingMs: AGEING_MS })
        const taken = [...(await stage.take(consumer, 2)), ...(await stage.take(consumer, 10))]
        assert.deepEqual(
          idsOf(taken),
          jobs.map(({ id }) => id),
        )
      },
    },
    {
      // X119
      name: 'under a constant stream of urgent jobs, one of the lowest priority starts after nine intervals',
      guarantees: ['I1'],
      ...need(ageing),
      async run(stage) {
        const [ageingMs, stepMs] = [100, 25]
        const consumer = await stage.consume({ ageingMs })
        const low = await stage.put({ priority: 10 })
        const fromMs = stage.nowMs
        let started = ''
        for (let step = 0; step < 100 && started !== low.id; step += 1) {
          if (step > 0) await stage.harness.advance(stepMs)
          await stage.put({ priority: 1 })
          const lease = await stage.one(consumer)
          await stage.settle(consumer, lease, complete)
          started = lease.job.id
        }
        assert.equal(started, low.id, 'it never started')
        const waitedMs = stage.nowMs - fromMs
        assert.ok(waitedMs >= 9 * ageingMs, `it overtook urgent jobs after ${waitedMs} ms`)
        if (stage.harness.clock !== systemClock) assert.ok(waitedMs <= 9 * ageingMs + stepMs, `it took ${waitedMs} ms`)
      },
    },
    {
      // X119
      name: 'ageing keeps rate limits and the bounds of single types',
      guarantees: ['I1', 'I10'],
      ...need(ageing, delay, limits),
      async run(stage) {
        const [limited, bounded, free] = [`${stage.type}-a`, `${stage.type}-b`, `${stage.type}-c`]
        for (const type of [limited, bounded]) {
          for (let index = 0; index < 4; index += 1) await waited(stage, 10, 100, { type })
        }
        for (let index = 0; index < 4; index += 1) await stage.put({ type: free, priority: 1 })
        const { leaseMs } = stage
        const types = [
          { type: limited, leaseMs, limit: { max: 2, perMs: MINUTE_MS } },
          { type: bounded, leaseMs },
          { type: free, leaseMs },
        ]
        const consumer = await stage.consume({ types, ageingMs: AGEING_MS })
        const leases = await stage.take(consumer, 6, { perType: { [bounded]: 1 } })
        const claimed = (type: string): number => leases.filter(({ job }) => job.type === type).length
        assert.deepEqual([claimed(limited), claimed(bounded), claimed(free)], [2, 1, 3])
        assert.deepEqual(
          leases.map(({ job }) => job.priority),
          [10, 10, 10, 1, 1, 1],
        )
        const rest = await stage.take(consumer, 10, { perType: { [bounded]: 0 } })
        assert.deepEqual(
          rest.map(({ job }) => job.type),
          [free],
        )
      },
    },
    {
      // X119
      name: 'claims with ageing at the same time, over two views, hand out each job once',
      guarantees: ['I4'],
      ...need(ageing, delay),
      async run(stage) {
        const jobs = Array.from({ length: 60 }, (_, index) =>
          stage.job({ priority: 1 + (index % 10), runAtMs: stage.nowMs - index * 3 * MINUTE_MS }),
        )
        await stage.engine.enqueue(jobs)
        const views = [stage.engine, await stage.other()]
        const consumers = await Promise.all(
          [...views, ...views].map((on) => stage.consume({ on, ageingMs: AGEING_MS })),
        )
        const taken: string[] = []
        for (let turn = 0; turn < 50 && taken.length < jobs.length; turn += 1) {
          const claims = await Promise.all(consumers.map((consumer) => stage.take(consumer, 4)))
          taken.push(...claims.flatMap(idsOf))
        }
        assert.deepEqual(taken.toSorted(), jobs.map(({ id }) => id).toSorted())
      },
    },
    {
      // X119
      name: 'ageing hands out nothing that waits for its time, for another job or for an older version',
      guarantees: ['I1', 'I4'],
      ...need(ageing, delay, dependencies, latest),
      async run(stage) {
        const consumer = await stage.consume({ ageingMs: AGEING_MS })
        const version = { key: 'page', seq: null }
        await waited(stage, 10, 100, { latest: version })
        const running = await stage.one(consumer)
        const newer = await waited(stage, 10, 100, { latest: version })
        await stage.put({ priority: 1, runAtMs: stage.nowMs + AGEING_MS })
        const predecessor = await waited(stage, 10, 1)
        const successor = await waited(stage, 10, 100, { after: { ids: [predecessor.id], ifDead: 'wait' } })
        const taken = await stage.take(consumer, 10)
        assert.deepEqual(idsOf(taken), [predecessor.id])
        await stage.settle(consumer, running, complete)
        await stage.settle(consumer, first(taken), complete)
        assert.deepEqual([...idsOf(await stage.take(consumer, 10))].sort(), [newer.id, successor.id].sort())
      },
    },
  ],
}
