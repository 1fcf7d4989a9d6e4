import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { newJob, type Scene, scene } from '../../../test/bullmq/scene.ts'
import type { Consumer, SubscribedType } from '../../engine/engine.ts'
import type { Lease, Outcome } from '../../engine/outcome.ts'
import type { NewJob } from '../../job/job.ts'

const signal = new AbortController().signal
const by = { who: 'ann', reason: 'test' }
const complete = { kind: 'complete', result: 'null', durationMs: 1 } as const
const ann = { orgId: 'ann' }
const ben = { orgId: 'ben' }

const jobs = (count: number, fields: Partial<NewJob>): NewJob[] => Array.from({ length: count }, () => newJob(fields))
const idsOf = (leases: readonly Lease[]): readonly string[] => leases.map(({ job }) => job.id)

function consume({ engine }: Scene, slots: SubscribedType['slots']): Promise<Consumer> {
  return engine.consume({ types: [{ type: 'mail', leaseMs: 60_000, slots }], worker: 'w' })
}
const take = (consumer: Consumer, max: number, waitMs = 0): Promise<readonly Lease[]> =>
  consumer.claim({ max, waitMs, signal })
const settle = (consumer: Consumer, leases: readonly Lease[], outcome: Outcome = complete): Promise<unknown> =>
  consumer.settle(leases.map((lease) => ({ lease, outcome })))

/** Until nothing is left, one claim and its settle after the other. */
async function runAll(consumer: Consumer, most: number): Promise<readonly string[]> {
  const ran: string[] = []
  for (let leases = await take(consumer, 10); leases.length > 0; leases = await take(consumer, 10)) {
    assert.ok(leases.length <= most, `${leases.length} at once`)
    ran.push(...idsOf(leases))
    await settle(consumer, leases)
  }
  return ran
}

describe('jobs sorted by tenant', { timeout: 300_000 }, () => {
  test('a job behind a backlog that many claims sort is found, and the backlog is sorted only once', async (t) => {
    const on = await scene(t)
    await on.engine.enqueue(jobs(2_500, { tenant: ann }))
    const [last] = await on.engine.enqueue([newJob({ tenant: ben, priority: 10 })])
    const consumer = await consume(on, { max: 1, by: 'tenant' })
    assert.equal((await take(consumer, 10)).length, 1)
    assert.deepEqual(idsOf(await take(consumer, 10, 60_000)), [last?.id])
    assert.equal(await on.redis.zcard(`${on.prefix}:mail::slots`), 2_499)
    assert.equal(await on.redis.zcount(`${on.prefix}:mail:prioritized`, 0, '+inf'), 0, 'nothing is left to sort')
    assert.equal((await on.engine.counts()).mail?.ready, 2_499)
  })

  test('are counted, listed, found and cancelled like others, and the oldest is known', async (t) => {
    const on = await scene(t)
    const waiting = jobs(4, { tenant: ann })
    const [held, cancelled, next] = waiting
    assert.ok(held && cancelled && next)
    await on.engine.enqueue(waiting)
    const consumer = await consume(on, { max: 1, by: 'tenant' })
    const leases = await take(consumer, 10)
    assert.deepEqual(idsOf(leases), [held.id])
    assert.equal((await on.inspector.list({ limit: 10, state: 'queued' })).length, 3)
    assert.equal((await on.inspector.oldestDue())?.id, cancelled.id)
    assert.equal(await on.engine.controls?.cancel(cancelled.id, by), true)
    assert.equal((await on.inspector.oldestDue())?.id, next.id)
    await settle(consumer, leases)
    assert.deepEqual(idsOf(await take(consumer, 10)), [next.id])
    assert.deepEqual((await on.engine.counts()).mail, { ready: 1, delayed: 0, inProgress: 1, completed: 1, dead: 0 })
  })

  test('a newer version takes the place of a sorted one', async (t) => {
    const on = await scene(t)
    const version = (): NewJob => newJob({ tenant: ann, latest: { key: 'doc', seq: null } })
    await on.engine.enqueue([newJob({ tenant: ann }), version(), newJob({ tenant: ann })])
    const consumer = await consume(on, { max: 1, by: 'tenant' })
    await take(consumer, 10).then((leases) => settle(consumer, leases))
    const newer = version()
    await on.engine.enqueue([newer])
    assert.deepEqual(idsOf(await take(consumer, 10)), [newer.id])
  })

  test('a consumer without slots takes them in their order, and so does BullMQ’s own worker', async (t) => {
    const on = await scene(t)
    const waiting = [3, 1, 2].flatMap((priority) => jobs(2, { tenant: ann, priority }))
    await on.engine.enqueue(waiting)
    const inOrder = waiting.toSorted((one, other) => one.priority - other.priority).map(({ id }) => id)
    const consumer = await consume(on, { max: 1, by: 'tenant' })
    await settle(consumer, await take(consumer, 10))
    const plain = await consume(on, undefined)
    const held = await take(plain, 3)
    assert.deepEqual(idsOf(held), inOrder.slice(1, 4))
    assert.deepEqual(await take(consumer, 10), [], 'what others hold counts')
    await settle(plain, held)
    await on.work(2, async () => {})
    assert.deepEqual((await on.engine.counts()).mail, { ready: 0, delayed: 0, inProgress: 0, completed: 6, dead: 0 })
    assert.deepEqual(await take(consumer, 10), [])
  })

  test('are found again when our key was lost', async (t) => {
    const on = await scene(t)
    await on.engine.enqueue([...jobs(5, { tenant: ann }), ...jobs(5, { tenant: ben })])
    const consumer = await consume(on, { max: 1, by: 'tenant' })
    await settle(consumer, await take(consumer, 10))
    await on.redis.del(`${on.prefix}:mail::slots`, `${on.prefix}:mail::holders`)
    assert.equal((await runAll(consumer, 2)).length, 8)
  })
})

describe('slots beside BullMQ', { timeout: 300_000 }, () => {
  test('what its workers run counts, as do jobs that its programs put into its list', async (t) => {
    const on = await scene(t)
    const whole = await consume(on, { max: 2, by: null })
    const each = await consume(on, { max: 1, by: 'tenant' })
    const started = Promise.withResolvers<void>()
    const end = Promise.withResolvers<void>()
    await on.engine.enqueue(jobs(9, { tenant: ann }))
    const worked = on.work(1, () => {
      started.resolve()
      return end.promise
    })
    await started.promise
    assert.deepEqual(await take(each, 10), [], 'a worker of BullMQ runs a job of the tenant')
    const held = await take(whole, 10)
    assert.equal(held.length, 1)
    await settle(whole, held)
    // As its check for stalled jobs does.
    const [id] = await on.redis.zpopmin(`${on.prefix}:mail:prioritized`)
    await on.redis.rpush(`${on.prefix}:mail:wait`, String(id))
    assert.deepEqual(await take(each, 10), [], 'the job has its tenant in any list')
    end.resolve()
    await worked
    await runAll(each, 1)
    assert.deepEqual((await on.engine.counts()).mail, { ready: 0, delayed: 0, inProgress: 0, completed: 9, dead: 0 })
  })

  test('foreign jobs are one group in their order, and a job of a tenant does not wait for them', async (t) => {
    const on = await scene(t)
    for (const n of [1, 2, 3]) await on.queue.add('welcome', { n })
    await on.queue.add('urgent', {}, { priority: 2_000_000 })
    const [ours] = await on.engine.enqueue([newJob({ tenant: ann })])
    const consumer = await consume(on, { max: 1, by: 'tenant' })
    const leases = await take(consumer, 10)
    assert.deepEqual(idsOf(leases), ['mail#1', ours?.id])
    await settle(consumer, leases)
    assert.deepEqual(await runAll(consumer, 1), ['mail#2', 'mail#3', 'mail#4'])
  })

  test('its readers see the jobs, and what it removes, moves or obliterates frees and takes no slot', async (t) => {
    const on = await scene(t)
    const waiting = jobs(6, { tenant: ann })
    const [, removed, later, sooner] = waiting
    assert.ok(removed && later && sooner)
    await on.engine.enqueue(waiting)
    const consumer = await consume(on, { max: 1, by: 'tenant' })
    const held = await take(consumer, 10)
    assert.equal((await on.queue.getJobCounts('prioritized')).prioritized, 5)
    const job = await on.queue.getJob(removed.id)
    assert.equal(await job?.getState(), 'prioritized')
    await job?.remove()
    await (await on.queue.getJob(later.id))?.changePriority({ priority: 9 })
    await (await on.queue.getJob(sooner.id))?.changePriority({ priority: 1 })
    assert.deepEqual(await take(consumer, 10), [])
    await settle(consumer, held)
    const ran = await runAll(consumer, 1)
    assert.deepEqual([ran[0], ran.at(-1), ran.length], [sooner.id, later.id, 4])
    await on.engine.enqueue(jobs(3, { tenant: ann }))
    await take(consumer, 10)
    await on.queue.obliterate({ force: true })
    await on.engine.enqueue(jobs(2, { tenant: ann }))
    assert.equal((await runAll(consumer, 1)).length, 2)
  })

  test('a running job that is cancelled wakes a claim that waits for its slot', async (t) => {
    const on = await scene(t)
    for (const kind of [null, 'tenant'] as const) {
      const [first, second] = await on.engine.enqueue(jobs(2, { tenant: ann }))
      assert.ok(first && second)
      const consumer = await consume(on, { max: 1, by: kind })
      assert.deepEqual(idsOf(await take(consumer, 10)), [first.id])
      const waiting = take(consumer, 10, 60_000)
      assert.equal(await on.engine.controls?.cancel(first.id, by), true)
      const leases = await waiting
      assert.deepEqual(idsOf(leases), [second.id])
      await settle(consumer, leases)
    }
  })
})
