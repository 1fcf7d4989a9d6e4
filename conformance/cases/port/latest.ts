import assert from 'node:assert/strict'
import type { Outcome } from '../../../src/engine/outcome.ts'
import type { NewJob } from '../../../src/job/job.ts'
import type { Case, CaseFile, Excuse } from '../../case.ts'
import { DELAY_MS, deadLetters, delay, inspection, latest, need, reaping, retention } from '../../needs.ts'
import { boom, complete, dead, first, idsOf, retry, type Stage } from '../../stage.ts'

const version = (key: string, payload: string, seq: number | null = null): Partial<NewJob> => ({
  latest: { key, seq },
  payload,
})

/** An older version that is no longer wanted ends superseded, whatever its handler made of it. */
const ends: readonly { readonly what: string; readonly outcome: Outcome }[] = [
  { what: 'fails', outcome: retry() },
  { what: 'dies', outcome: dead },
]

const superseded = ends.map(
  ({ what, outcome }): Case => ({
    // C32
    name: `an older version that ${what} while a newer one waits ends superseded`,
    guarantees: ['I4', 'I1'],
    ...need(latest, inspection),
    async run(stage) {
      const old = await stage.put(version('k', '1'))
      const consumer = await stage.consume()
      const lease = await stage.one(consumer)
      const newer = await stage.put(version('k', '2'))
      await stage.settle(consumer, lease, outcome)
      const view = await stage.view(old.id)
      assert.equal(view.state, 'superseded')
      assert.deepEqual(idsOf(await stage.take(consumer, 5)), [newer.id])
      await stage.expectCounts({ inProgress: 1 })
    },
  }),
)

/** The last version of a key is removed as it ends, and with it the last job of the key. */
const removals: readonly { readonly what: string; readonly outcome: Outcome; readonly excuse: Excuse }[] = [
  {
    what: 'completed',
    outcome: { kind: 'complete', result: '1', durationMs: 1, keep: 0 },
    excuse: need(latest, retention),
  },
  { what: 'died', outcome: { kind: 'dead', error: boom, keep: 0 }, excuse: need(latest, retention, deadLetters) },
]

const forgotten = removals.map(
  ({ what, outcome, excuse }): Case => ({
    name: `stale seq: an older version is refused after a newer one has ${what} and was removed`,
    guarantees: ['I4'],
    ...excuse,
    async run(stage) {
      await stage.put(version('k', '"seven"', 7))
      const consumer = await stage.consume()
      await stage.settle(consumer, await stage.one(consumer), outcome)
      await stage.expectCounts({})
      for (const seq of [6, 7]) {
        const late = await stage.put(version('k', '"late"', seq))
        assert.equal(late.receipt.status, 'stale', `sequence ${seq} after 7`)
      }
      await stage.none(consumer, 'an older version ran after a newer one')
      assert.equal((await stage.put(version('k', '"eight"', 8))).receipt.status, 'enqueued')
      assert.equal((await stage.one(consumer)).job.payload, '"eight"')
    },
  }),
)

/** Claims and settles until nothing is left, and notes each version as it starts. */
async function drain(stage: Stage, outcome: (start: number) => Outcome): Promise<readonly string[]> {
  const consumer = await stage.consume()
  const started: string[] = []
  for (let start = 1; start <= 20; start += 1) {
    const leases = await stage.take(consumer, 5)
    if (leases.length === 0) return started
    assert.equal(leases.length, 1, 'two versions of one key in flight')
    started.push(first(leases).job.payload)
    await stage.settle(consumer, first(leases), outcome(start))
  }
  return started
}

export const latestKeys: CaseFile = {
  level: 'port',
  concept: 'Latest keys',
  cases: [
    {
      // C05 C19
      name: 'a newer version replaces the waiting one',
      guarantees: ['I4'],
      ...need(latest, inspection),
      async run(stage) {
        const old = await stage.put(version('k', '1'))
        assert.equal(old.receipt.status, 'enqueued')
        const newer = await stage.put(version('k', '2'))
        assert.deepEqual(newer.receipt, { id: newer.id, status: 'replaced' })
        await stage.expectCounts({ ready: 1 })
        const view = await stage.view(old.id)
        assert.equal(view.state, 'superseded')
        const leases = await stage.take(await stage.consume(), 5)
        assert.deepEqual(
          leases.map(({ job }) => [job.id, job.payload, job.latestKey]),
          [[newer.id, '2', 'k']],
        )
      },
    },
    {
      // C15
      name: 'a newer version keeps the place of the one it replaces',
      guarantees: ['I4'],
      ...need(latest),
      async run(stage) {
        await stage.put(version('a', '"a1"'))
        await stage.put(version('b', '"b1"'))
        await stage.harness.advance(5)
        await stage.put(version('c', '"c1"'))
        await stage.put(version('a', '"a2"'))
        const leases = await stage.take(await stage.consume(), 5)
        assert.deepEqual(
          leases.map(({ job }) => job.payload),
          ['"a2"', '"b1"', '"c1"'],
        )
      },
    },
    {
      name: 'a version that is due earlier than the one it replaces is not held back by it',
      guarantees: ['I4'],
      ...need(latest, delay),
      async run(stage) {
        await stage.put({ ...version('k', '1'), delayMs: DELAY_MS })
        const newer = await stage.put(version('k', '2'))
        assert.deepEqual(idsOf(await stage.take(await stage.consume(), 5)), [newer.id])
      },
    },
    {
      // C23 X131
      name: 'a newer version waits while an older one is in flight',
      guarantees: ['I4'],
      ...need(latest),
      async run(stage) {
        await stage.put(version('k', '1'))
        const consumer = await stage.consume()
        const old = await stage.one(consumer)
        const newer = await stage.put(version('k', '2'))
        assert.deepEqual(newer.receipt, { id: newer.id, status: 'enqueued' })
        await stage.none(consumer, 'two versions of one key in flight')
        await stage.settle(consumer, old, complete)
        assert.deepEqual(idsOf(await stage.take(consumer, 5)), [newer.id])
      },
    },
    {
      name: 'of several versions that arrive while one is in flight only the last runs',
      guarantees: ['I4'],
      ...need(latest),
      async run(stage) {
        await stage.put(version('k', '1'))
        const consumer = await stage.consume()
        const old = await stage.one(consumer)
        for (const payload of ['2', '3', '4']) await stage.put(version('k', payload))
        await stage.settle(consumer, old, complete)
        assert.deepEqual(await drain(stage, () => complete), ['4'])
      },
    },
    ...superseded,
    {
      name: 'an older version never runs after a newer one, whatever becomes of it',
      guarantees: ['I4'],
      ...need(latest),
      async run(stage) {
        await stage.put(version('k', '1'))
        const consumer = await stage.consume()
        const old = await stage.one(consumer)
        await stage.put(version('k', '2'))
        await stage.settle(consumer, old, { kind: 'release', delayMs: 0, reason: 'staged' })
        const started = await drain(stage, () => complete)
        assert.equal(started.at(-1), '2', 'the newest version did not run last')
        assert.deepEqual(started, [...started].sort(), 'an older version ran after a newer one')
      },
    },
    {
      // X130 C29
      name: 'a failed version without a successor is retried',
      guarantees: ['I2', 'I4'],
      ...need(latest),
      async run(stage) {
        await stage.put(version('k', '1'))
        assert.deepEqual(await drain(stage, (start) => (start < 3 ? retry() : complete)), ['1', '1', '1'])
        await stage.expectCounts({ completed: 1 })
      },
    },
    {
      // C13 C14
      name: 'a sequence number that is not higher than the highest seen is stale',
      guarantees: ['I4'],
      ...need(latest),
      async run(stage) {
        await stage.put(version('k', '"two"', 2))
        for (const seq of [1, 2]) {
          const late = await stage.put(version('k', '"late"', seq))
          assert.equal(late.receipt.status, 'stale', `sequence ${seq} after 2`)
        }
        await stage.expectCounts({ ready: 1 })
        const consumer = await stage.consume()
        assert.equal((await stage.one(consumer)).job.payload, '"two"')
        const late = await stage.put(version('k', '"late"', 1))
        assert.equal(late.receipt.status, 'stale', 'sequence 1 while 2 is in flight')
        await stage.expectCounts({ inProgress: 1 })
      },
    },
    ...forgotten,
    {
      // C04 C10
      name: 'a version without a sequence number is newer than all before it',
      guarantees: ['I4'],
      ...need(latest),
      async run(stage) {
        const statuses: string[] = []
        for (const seq of [5, null, 6, 7]) statuses.push((await stage.put(version('k', '1', seq))).receipt.status)
        assert.deepEqual(statuses, ['enqueued', 'replaced', 'stale', 'replaced'])
      },
    },
    {
      // C03
      name: 'the same latest key under two types does not collide',
      guarantees: ['I4'],
      ...need(latest),
      async run(stage) {
        const elsewhere = `${stage.type}-elsewhere`
        const here = await stage.put(version('k', '1'))
        const there = await stage.put({ ...version('k', '1'), type: elsewhere })
        assert.deepEqual([here.receipt.status, there.receipt.status], ['enqueued', 'enqueued'])
        const leases = await stage.take(await stage.consume({ types: [stage.type, elsewhere] }), 5)
        assert.deepEqual([...idsOf(leases)].sort(), [here.id, there.id].sort())
      },
    },
    {
      name: 'versions in one batch supersede each other in order',
      guarantees: ['I4'],
      ...need(latest),
      async run(stage) {
        const receipts = await stage.engine.enqueue(['1', '2', '3'].map((payload) => stage.job(version('k', payload))))
        assert.deepEqual(
          receipts.map(({ status }) => status),
          ['enqueued', 'replaced', 'replaced'],
        )
        assert.deepEqual(await drain(stage, () => complete), ['3'])
      },
    },
    {
      name: 'many claims through two views never hold two versions of one key',
      guarantees: ['I4'],
      ...need(latest),
      async run(stage) {
        const rival = await stage.other()
        const consumers = [await stage.consume(), await stage.consume({ on: rival })]
        for (let round = 0; round < 10; round += 1) {
          await Promise.all([stage.put(version('k', `${round}`)), stage.put(version('k', `${round}`), rival)])
          const racing = consumers.flatMap((consumer) => Array.from({ length: 3 }, () => stage.take(consumer, 5)))
          const held = (await Promise.all(racing)).map((leases, index) => ({ leases, index }))
          const leases = held.flatMap((claim) => claim.leases)
          assert.equal(leases.length, 1, 'one version of the key in flight')
          const holder = consumers[held.findIndex((claim) => claim.leases.length === 1) < 3 ? 0 : 1]
          assert.ok(holder)
          await stage.settle(holder, first(leases), complete)
        }
      },
    },
    {
      name: 'a version recovered from a dead holder gives way to the newer one that waits',
      guarantees: ['I4', 'I6'],
      ...need(latest),
      async run(stage) {
        await stage.put(version('k', '1'))
        const consumer = await stage.consume()
        const zombie = await stage.one(consumer)
        const newer = await stage.put(version('k', '2'))
        await stage.recover(zombie)
        assert.deepEqual(idsOf(await stage.take(consumer, 5)), [newer.id])
        await stage.refused(consumer, zombie, complete)
      },
    },
    {
      name: 'a newer version keeps waiting while the reaper holds the older one',
      guarantees: ['I4'],
      ...need(latest, reaping),
      async run(stage) {
        await stage.put(version('k', '1'))
        const consumer = await stage.consume()
        const zombie = await stage.one(consumer)
        await stage.put(version('k', '2'))
        await stage.expire(zombie)
        const reaper = await stage.reaper()
        assert.deepEqual(idsOf(await stage.take(reaper, 5, { from: 'expired' })), [zombie.job.id])
        await stage.none(consumer, 'two versions of one key in flight')
      },
    },
  ],
}
