import assert from 'node:assert/strict'
import type { SubscribedType } from '../../../src/engine/engine.ts'
import type { Lease } from '../../../src/engine/outcome.ts'
import { limits, slots } from '../../bounds.ts'
import type { CaseFile } from '../../case.ts'
import { DELAY_MS, delay, need, priority } from '../../needs.ts'
import { complete, first, idsOf, never } from '../../stage.ts'

const whole = (max: number) => ({ max, by: null })
const each = (max: number) => ({ max, by: 'tenant' as const })
const ann = { orgId: 'ann' }
const ben = { orgId: 'ben' }
const cleo = { orgId: 'cleo', workspaceId: 'w1' }

/** How many of the leases each tenant has, by name; '-' without one. */
function byTenant(leases: readonly Lease[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const { job } of leases) counts[job.tenant?.orgId ?? '-'] = (counts[job.tenant?.orgId ?? '-'] ?? 0) + 1
  return counts
}

export const slotLimits: CaseFile = {
  level: 'port',
  concept: 'Slots over all workers',
  cases: [
    {
      name: 'no more jobs of a type are held than it has slots, over all views, however many claims run at once',
      guarantees: ['I10'],
      ...need(slots),
      async run(stage) {
        await stage.engine.enqueue(stage.jobs(12))
        const other = await stage.other()
        const views = [stage.engine, other, stage.engine, other]
        const consumers = await Promise.all(views.map((on) => stage.consume({ slots: whole(3), on })))
        const held = (await Promise.all(consumers.map((consumer) => stage.take(consumer, 2)))).flat()
        for (const consumer of consumers) held.push(...(await stage.take(consumer, 10)))
        assert.equal(held.length, 3)
        await stage.expectCounts({ ready: 9, inProgress: 3 })
      },
    },
    {
      name: 'each tenant has slots of its own, and jobs without a tenant share one group',
      guarantees: ['I10'],
      ...need(slots),
      async run(stage) {
        const mixed = [ann, ben, null].flatMap((tenant) => stage.jobs(5, { tenant }))
        await stage.engine.enqueue([...mixed, ...stage.jobs(1, { tenant: { orgId: 'ann', workspaceId: 'w1' } })])
        const consumers = [
          await stage.consume({ slots: each(2) }),
          await stage.consume({ slots: each(2), on: await stage.other() }),
        ]
        const held: Lease[] = []
        for (const consumer of [...consumers, ...consumers]) held.push(...(await stage.take(consumer, 4)))
        assert.deepEqual(byTenant(held), { ann: 2, ben: 2, '-': 2 })
        await stage.expectCounts({ ready: 10, inProgress: 6 })
      },
    },
    {
      name: 'a full tenant holds up no other, whatever its backlog and its priorities',
      guarantees: ['I6', 'I10'],
      ...need(slots, priority),
      async run(stage) {
        await stage.engine.enqueue(stage.jobs(60, { tenant: ann, priority: 1 }))
        const consumer = await stage.consume({ slots: each(2) })
        assert.deepEqual(byTenant(await stage.take(consumer, 10)), { ann: 2 })
        await stage.none(consumer, 'the tenant has no free slot')
        await stage.engine.enqueue([stage.job({ tenant: ben, priority: 10 }), stage.job({ priority: 10 })])
        assert.deepEqual(byTenant(await stage.take(consumer, 10)), { ben: 1, '-': 1 })
      },
    },
    {
      name: 'the tenant with the fewest running jobs is next, so none starves behind the backlog of another',
      guarantees: ['I6'],
      ...need(slots),
      async run(stage) {
        await stage.engine.enqueue(stage.jobs(20, { tenant: ann }))
        await stage.engine.enqueue([...stage.jobs(2, { tenant: ben }), ...stage.jobs(1, { tenant: cleo })])
        const consumer = await stage.consume({ slots: each(10) })
        assert.deepEqual(byTenant(await stage.take(consumer, 3)), { ann: 1, ben: 1, cleo: 1 })
        const one = await stage.one(consumer)
        assert.deepEqual(byTenant([one, ...(await stage.take(consumer, 1))]), { ann: 1, ben: 1 })
        assert.deepEqual(byTenant(await stage.take(consumer, 4)), { ann: 4 })
      },
    },
    {
      name: 'priority holds within a tenant',
      guarantees: ['I6'],
      ...need(slots, priority),
      async run(stage) {
        const ranked = [5, 9, 1, 5].map((rank) => stage.job({ tenant: ann, priority: rank }))
        await stage.engine.enqueue(ranked)
        const consumer = await stage.consume({ slots: each(3) })
        const order = [2, 0, 3].map((index) => ranked[index]?.id)
        assert.deepEqual(idsOf(await stage.take(consumer, 10)), order)
      },
    },
    {
      name: 'slots of one type leave the others alone, and a full type does not stand in front of them',
      guarantees: ['I6', 'I10'],
      ...need(slots),
      async run(stage) {
        const { leaseMs } = stage
        const [narrow, shared, wide] = ['narrow', 'shared', 'wide'].map((name) => `${stage.type}-${name}`)
        assert.ok(narrow && shared && wide)
        for (const type of [narrow, shared, wide]) await stage.engine.enqueue(stage.jobs(4, { type, tenant: ann }))
        const types = [
          { type: narrow, leaseMs, slots: whole(1) },
          { type: shared, leaseMs, slots: each(2) },
          { type: wide, leaseMs },
        ]
        const leases = await stage.take(await stage.consume({ types }), 20)
        const claimed = [narrow, shared, wide].map((type) => leases.filter(({ job }) => job.type === type).length)
        assert.deepEqual(claimed, [1, 2, 4])
      },
    },
    {
      name: 'slots and a rate limit of one type hold together, and so does the bound of a claim',
      guarantees: ['I10'],
      ...need(slots, limits),
      async run(stage) {
        await stage.engine.enqueue([...stage.jobs(5, { tenant: ann }), ...stage.jobs(5, { tenant: ben })])
        const consumer = await stage.consume({ slots: each(2), limit: { max: 3, perMs: 400 } })
        const one = await stage.take(consumer, 10, { perType: { [stage.type]: 1 } })
        assert.equal(one.length, 1)
        assert.equal((await stage.take(consumer, 10)).length, 2)
        await stage.harness.advance(401)
        assert.equal((await stage.take(consumer, 10)).length, 1, 'of four slots three are taken')
      },
    },
    {
      name: 'a delayed job of a tenant is claimed when it is due, while another tenant is full',
      guarantees: ['I6'],
      ...need(slots, delay),
      async run(stage) {
        await stage.engine.enqueue(stage.jobs(5, { tenant: ann }))
        const consumer = await stage.consume({ slots: each(1) })
        await stage.one(consumer)
        const { id } = await stage.put({ tenant: ben, delayMs: DELAY_MS })
        await stage.none(consumer, 'the job is not due')
        const waiting = consumer.claim({ max: 5, waitMs: 4 * DELAY_MS, signal: never })
        const leases = await stage.within(3 * DELAY_MS, waiting, 'the claim that waits for the due time')
        assert.deepEqual(idsOf(leases), [id])
      },
    },
    {
      name: 'a waiting claim takes the slot that a settle frees, in the same view at once',
      guarantees: ['I6'],
      ...need(slots),
      async run(stage) {
        for (const slotsOf of [whole(1), each(1)]) {
          const type = `${stage.type}-${slotsOf.by ?? 'whole'}`
          const jobs = stage.jobs(3, { type, tenant: ann })
          await stage.engine.enqueue(jobs)
          const types = [{ type, leaseMs: stage.leaseMs, slots: slotsOf }]
          const consumer = await stage.consume({ types })
          const held = await stage.one(consumer)
          const waiting = consumer.claim({ max: 5, waitMs: 60_000, signal: never })
          await stage.settle(consumer, held, complete)
          const [second] = await stage.promptly(waiting, 'the claim that waits for the slot')
          assert.ok(second)
          const other = await stage.consume({ types, on: await stage.other() })
          await stage.settle(consumer, second, complete)
          const soon = stage.take(other, 1, { waitMs: 2_000 })
          assert.equal((await stage.within(4_000, soon, 'the slot in another view')).length, 1)
        }
      },
    },
    {
      name: 'the number of slots may change while a consumer is at work',
      guarantees: ['I10'],
      ...need(slots),
      async run(stage) {
        for (const by of [null, 'tenant'] as const) {
          const type = `${stage.type}-${by ?? 'whole'}`
          await stage.engine.enqueue(stage.jobs(9, { type, tenant: ann }))
          const subscribed = { type, leaseMs: stage.leaseMs, slots: { max: 1, by } } satisfies SubscribedType
          const consumer = await stage.consume({ types: [subscribed] })
          const held = [...(await stage.take(consumer, 10))]
          assert.equal(held.length, 1)
          subscribed.slots = { max: 3, by }
          held.push(...(await stage.take(consumer, 10)))
          assert.equal(held.length, 3, 'more slots are used at the next claim')
          subscribed.slots = { max: 2, by }
          await stage.settle(consumer, first(held), complete)
          await stage.none(consumer, 'two are still held')
          await stage.settle(consumer, first(held.slice(1)), complete)
          assert.equal((await stage.take(consumer, 10)).length, 1)
        }
      },
    },
  ],
}
