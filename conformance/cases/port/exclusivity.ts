import assert from 'node:assert/strict'
import type { Consumer } from '../../../src/engine/engine.ts'
import type { CaseFile } from '../../case.ts'
import { need } from '../../needs.ts'
import { sharing } from '../../partitions.ts'
import { complete, idsOf, type Stage } from '../../stage.ts'

const MANY = 10_000
const BATCH = 200

/** Claims and completes until a claim comes back empty; answers the ids in the order they came. */
async function drain(stage: Stage, consumer: Consumer): Promise<readonly string[]> {
  const delivered: string[] = []
  for (;;) {
    const leases = await stage.take(consumer, BATCH)
    if (leases.length === 0) return delivered
    delivered.push(...idsOf(leases))
    const lost = await consumer.settle(leases.map((lease) => ({ lease, outcome: complete })))
    assert.deepEqual(lost, [], 'a holder was refused although nobody else had its jobs')
  }
}

export const exclusivity: CaseFile = {
  level: 'port',
  concept: 'Exclusive claims',
  cases: [
    {
      // B92 A13
      name: 'no two holders share a job, however many claim at once through two views',
      guarantees: ['I4'],
      ...need(sharing),
      async run(stage) {
        const jobs = stage.jobs(60)
        await stage.engine.enqueue(jobs)
        const consumers = [await stage.consume(), await stage.consume({ on: await stage.other() })]
        const racing = consumers.flatMap((consumer) => Array.from({ length: 12 }, () => stage.take(consumer, 4)))
        const leases = (await Promise.all(racing)).flat()
        assert.equal(new Set(idsOf(leases)).size, leases.length, 'a job was handed out twice')
        assert.deepEqual([...idsOf(leases)].sort(), jobs.map(({ id }) => id).sort())
        assert.equal(new Set(leases.map(({ token }) => token)).size, leases.length, 'two claims share a token')
        await stage.expectCounts({ inProgress: 60 })
      },
    },
    {
      // B178
      name: 'a held job is nobody else’s until its lease has run out',
      guarantees: ['I4'],
      async run(stage) {
        await stage.put()
        const consumer = await stage.consume()
        const rival = await stage.consume({ on: await stage.other() })
        await stage.one(consumer)
        await stage.none(rival, 'a held job was handed out again')
        await stage.none(consumer, 'a held job was handed out again to its own holder')
        await stage.harness.advance(stage.leaseMs / 2)
        await stage.none(rival, 'a held job was handed out before its lease had run out')
      },
    },
    {
      // B49
      name: 'a completed job is never handed out again',
      guarantees: ['I1', 'I4'],
      async run(stage) {
        await stage.put()
        const consumer = await stage.consume()
        await stage.settle(consumer, await stage.one(consumer), complete)
        await stage.none(consumer, 'a completed job was handed out')
        await stage.harness.advance(stage.leaseMs * 2)
        await stage.none(consumer, 'a completed job was handed out after its lease')
        await stage.expectCounts({ completed: 1 })
      },
    },
    {
      // A13 B92
      name: 'ten thousand jobs are delivered once each to two views that race for them',
      guarantees: ['I1', 'I4'],
      async run(stage) {
        const ids: string[] = []
        for (let stored = 0; stored < MANY; stored += 1_000) {
          const jobs = stage.jobs(1_000)
          ids.push(...jobs.map(({ id }) => id))
          await stage.engine.enqueue(jobs)
        }
        const rival = await stage.other()
        const consumers = [
          await stage.consume(),
          await stage.consume({ on: rival }),
          await stage.consume({ on: rival }),
        ]
        const delivered = (await Promise.all(consumers.map((consumer) => drain(stage, consumer)))).flat()
        assert.equal(delivered.length, MANY)
        assert.deepEqual([...new Set(delivered)].sort(), ids.sort())
        await stage.expectCounts({ completed: MANY })
      },
    },
  ],
}
