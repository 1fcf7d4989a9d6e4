import assert from 'node:assert/strict'
import type { Consumer } from '../../../src/engine/engine.ts'
import type { Lease } from '../../../src/engine/outcome.ts'
import type { Case, CaseFile } from '../../case.ts'
import { need, reaping } from '../../needs.ts'
import { sharing } from '../../partitions.ts'
import { boom, complete, dead, first, release, retry, type Stage } from '../../stage.ts'

/** Everything a holder can try. Each must be refused, and say so, once the lease is gone. */
const moves: readonly {
  readonly verb: string
  refused(stage: Stage, consumer: Consumer, lease: Lease): Promise<void>
}[] = [
  {
    verb: 'complete',
    refused: async (stage, consumer, lease) => void (await stage.refused(consumer, lease, complete)),
  },
  { verb: 'retry', refused: async (stage, consumer, lease) => void (await stage.refused(consumer, lease, retry())) },
  { verb: 'bury', refused: async (stage, consumer, lease) => void (await stage.refused(consumer, lease, dead)) },
  {
    verb: 'release',
    refused: async (stage, consumer, lease) => void (await stage.refused(consumer, lease, release())),
  },
  {
    verb: 'renew',
    async refused(stage, consumer, lease) {
      const lost = await consumer.renew([lease], stage.leaseMs)
      assert.deepEqual(
        lost.map((loss) => loss.lease.token),
        [lease.token],
        'a lease that is gone was renewed',
      )
    },
  },
  {
    verb: 'report progress of',
    async refused(_stage, consumer, lease) {
      assert.equal(await consumer.report(lease, '{"percent":99}'), false, 'progress without a lease was accepted')
    },
  },
]

async function zombie(stage: Stage): Promise<{ readonly consumer: Consumer; readonly stale: Lease }> {
  await stage.put()
  const consumer = await stage.consume({ worker: 'suite:1:zombie' })
  const stale = await stage.one(consumer)
  return { consumer, stale }
}

const beforeReaping = moves.map(
  ({ verb, refused }): Case => ({
    name: `a holder whose lease ran out cannot ${verb} the job, though nobody has reaped it`,
    guarantees: ['I3'],
    ...need(reaping),
    async run(stage) {
      const { consumer, stale } = await zombie(stage)
      await stage.expire(stale)
      await refused(stage, consumer, stale)
      await stage.expectCounts({ inProgress: 1 })
      const reaper = await stage.reaper()
      const leases = await stage.take(reaper, 5, { from: 'expired' })
      assert.deepEqual(
        leases.map(({ job, attempt }) => [job.id, attempt]),
        [[stale.job.id, 1]],
      )
    },
  }),
)

const whileReaped = moves.map(
  ({ verb, refused }): Case => ({
    name: `a late holder cannot ${verb} the job while the reaper has it`,
    guarantees: ['I3'],
    ...need(reaping),
    async run(stage) {
      const { consumer, stale } = await zombie(stage)
      await stage.expire(stale)
      const reaper = await stage.reaper(await stage.other())
      const held = first(await stage.take(reaper, 1, { from: 'expired' }))
      await refused(stage, consumer, stale)
      await stage.expectCounts({ inProgress: 1 })
      await stage.settle(reaper, held, { kind: 'dead', error: { ...boom, message: 'reaped' } })
      await stage.expectCounts({ dead: 1 })
    },
  }),
)

const afterReclaim = moves.map(
  ({ verb, refused }): Case => ({
    name: `a late holder cannot ${verb} the job once another holds it`,
    guarantees: ['I3'],
    ...need(sharing),
    async run(stage) {
      const { consumer, stale } = await zombie(stage)
      const rival = await stage.other()
      await stage.recover(stale, rival)
      const successor = await stage.consume({ on: rival })
      const fresh = await stage.one(successor)
      assert.notEqual(fresh.token, stale.token)
      await refused(stage, consumer, stale)
      await stage.expectCounts({ inProgress: 1 })
      assert.deepEqual(await successor.renew([fresh], stage.leaseMs), [], 'the true holder lost its lease')
      await stage.settle(successor, fresh, complete)
      await stage.expectCounts({ completed: 1 })
      await refused(stage, consumer, stale)
      await stage.expectCounts({ completed: 1 })
    },
  }),
)

const afterSettle = moves.map(
  ({ verb, refused }): Case => ({
    name: `a holder that has settled cannot ${verb} the job again`,
    guarantees: ['I3'],
    async run(stage) {
      const { consumer, stale } = await zombie(stage)
      await stage.settle(consumer, stale, complete)
      await refused(stage, consumer, stale)
      await stage.expectCounts({ completed: 1 })
    },
  }),
)

const withForgedToken = moves.map(
  ({ verb, refused }): Case => ({
    name: `nobody can ${verb} a running job with a token that is not its own`,
    guarantees: ['I3'],
    async run(stage) {
      const { consumer, stale: held } = await zombie(stage)
      await refused(stage, consumer, { ...held, token: `${held.token}-forged` })
      await stage.expectCounts({ inProgress: 1 })
      await stage.settle(consumer, held, complete)
    },
  }),
)

export const fencing: CaseFile = {
  level: 'port',
  concept: 'Fencing: a holder without a lease changes nothing',
  cases: [
    ...beforeReaping,
    ...whileReaped,
    ...afterReclaim,
    ...afterSettle,
    ...withForgedToken,
    {
      // X193
      name: 'a job released and claimed again is fenced against its first holder',
      guarantees: ['I3'],
      async run(stage) {
        const { consumer, stale } = await zombie(stage)
        await stage.settle(consumer, stale, release())
        const fresh = await stage.one(consumer)
        assert.notEqual(fresh.token, stale.token, 'a token was used twice')
        await stage.refused(consumer, stale, complete)
        await stage.settle(consumer, fresh, complete)
      },
    },
  ],
}
