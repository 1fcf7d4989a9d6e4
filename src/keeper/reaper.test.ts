import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Mill, open } from '../client/mill.ts'
import type { Lease } from '../engine/outcome.ts'
import type { MillEvents } from '../events.ts'
import { type AnyJob, defineJob } from '../job/definition.ts'
import { redact } from '../job/error-record.ts'
import { LEASE_DEFAULT_MS } from '../job/options.ts'
import { TestClock } from '../testing/test-clock.ts'
import { type ReaperParts, reapOnce } from './reaper.ts'

const orphan = defineJob({ type: 'orphan' })

interface Stage {
  readonly mill: Mill
  readonly clock: TestClock
  readonly parts: ReaperParts
  readonly reaped: MillEvents['lease.reaped'][]
  /** Claims as a worker that will never be heard of again. */
  abandon(type: string, max: number): Promise<readonly Lease[]>
}

async function staged(t: { after(run: () => Promise<void>): void }, ...jobs: AnyJob[]): Promise<Stage> {
  const clock = new TestClock()
  const mill = await open('memory:', { clock, random: () => 0, jobs })
  t.after(() => mill.close())
  const reaped: MillEvents['lease.reaped'][] = []
  mill.events.on('lease.reaped', (event) => void reaped.push(event))
  const { engine, events } = mill
  const definitions = new Map(jobs.map((job) => [job.type, job]))
  const parts = { engine, definitions, clock, random: () => 0, redactor: redact, events, worker: 'reaper' }
  const abandon = async (type: string, max: number): Promise<readonly Lease[]> => {
    const consumer = await engine.consume({ types: [{ type, leaseMs: 1_000 }], worker: 'dying' })
    return consumer.claim({ max, waitMs: 0, signal: new AbortController().signal })
  }
  return { mill, clock, parts, reaped, abandon }
}

const kinds = (reaped: readonly MillEvents['lease.reaped'][]) => reaped.map(({ outcome }) => outcome.kind)

// B99 B139 B140
test('only expired leases are recovered: back to the queue, with the attempt used', async (t) => {
  const job = defineJob({ type: 'a', backoff: { kind: 'fixed', delay: '5s' } })
  const { mill, clock, parts, reaped, abandon } = await staged(t, job)
  const early = await mill.enqueue(job, null)
  await abandon('a', 1)
  await clock.advance(999)
  await mill.enqueue(job, null)
  await abandon('a', 1)
  assert.deepEqual(await reapOnce(parts), { retried: 0, dead: 0 })
  await clock.advance(2)
  const pass = mill.events.next('reaper.pass')
  assert.deepEqual(await reapOnce(parts), { retried: 1, dead: 0 })
  assert.deepEqual(await pass, { retried: 1, dead: 0, durationMs: 0 })
  assert.equal(reaped[0]?.job.id, early.id)
  assert.ok(!('payload' in (reaped[0]?.job ?? {})))
  const view = await mill.job(early.id)
  assert.equal(view?.state, 'queued')
  assert.equal(view?.attempt, 1)
  assert.equal(view?.leaseOwner, null)
  assert.equal(view?.runAtMs, clock.nowMs() + 5_000)
  assert.equal(view?.error?.code, 'ERR_LEASE_EXPIRED')
})

// A45
test('a job that dies here is kept or removed as its definition says', async (t) => {
  const job = defineJob({ type: 'a', attempts: 1, removeOnFail: true })
  const { mill, clock, parts, reaped, abandon } = await staged(t, job)
  const gone = await mill.enqueue(job, null)
  const kept = await mill.enqueue(job, null, { removeOnFail: false })
  await abandon('a', 2)
  await clock.advance(1_001)
  assert.deepEqual(await reapOnce(parts), { retried: 0, dead: 2 })
  const keeps = reaped.map(({ outcome }) => (outcome.kind === 'dead' ? outcome.keep : assert.fail(outcome.kind)))
  assert.deepEqual(keeps, [0, undefined])
  assert.deepEqual([await mill.job(gone.id), (await mill.job(kept.id))?.state], [null, 'dead_letter'])
})

// X080 I5
test('a job that kills every worker is dead after its last attempt', async (t) => {
  const job = defineJob({ type: 'poison', attempts: 3, backoff: { kind: 'fixed', delay: 0 } })
  const { mill, clock, parts, reaped, abandon } = await staged(t, job)
  const { id } = await mill.enqueue(job, null)
  for (let attempt = 1; attempt <= 3; attempt += 1) {
    assert.equal((await abandon('poison', 1))[0]?.attempt, attempt)
    await clock.advance(1_001)
    await reapOnce(parts)
  }
  assert.deepEqual(kinds(reaped), ['retry', 'retry', 'dead'])
  assert.equal((await mill.job(id))?.state, 'dead_letter')
  assert.equal((await abandon('poison', 1)).length, 0)
})

// B120
test('a type that nobody here defines is recovered by its stored attempts and the default backoff', async (t) => {
  const { mill, clock, parts, reaped, abandon } = await staged(t)
  await mill.enqueue(defineJob({ type: 'foreign', attempts: 2 }), null)
  await abandon('foreign', 1)
  await clock.advance(1_001)
  await reapOnce(parts)
  assert.ok(reaped[0]?.outcome.kind === 'retry' && reaped[0].outcome.delayMs === 2_000)
  await clock.advance(2_000)
  await abandon('foreign', 1)
  await clock.advance(1_001)
  assert.deepEqual(await reapOnce(parts), { retried: 0, dead: 1 })
})

test('the backoff stored with the job comes before that of its definition', async (t) => {
  const job = defineJob({ type: 'a', backoff: { kind: 'fixed', delay: '5s' } })
  const { mill, clock, parts, reaped, abandon } = await staged(t, job)
  await mill.enqueue(job, null, { backoff: { kind: 'fixed', delay: '7s' } })
  await abandon('a', 1)
  await clock.advance(1_001)
  await reapOnce(parts)
  assert.ok(reaped[0]?.outcome.kind === 'retry' && reaped[0].outcome.delayMs === 7_000)
})

test('a pass goes on batch by batch until nothing is left', async (t) => {
  const job = defineJob({ type: 'a' })
  const { mill, clock, parts, abandon } = await staged(t, job)
  await mill.enqueueMany(job, Array(25).fill(null))
  await abandon('a', 25)
  await clock.advance(1_001)
  assert.deepEqual(await reapOnce(parts, 10), { retried: 25, dead: 0 })
  assert.deepEqual(await reapOnce(parts, 10), { retried: 0, dead: 0 })
})

// I3
test('the late holder of a reaped lease changes nothing', async (t) => {
  const job = defineJob({ type: 'a' })
  const { mill, clock, parts, abandon } = await staged(t, job)
  const { id } = await mill.enqueue(job, null)
  const [lease] = await abandon('a', 1)
  assert.ok(lease)
  await clock.advance(1_001)
  await reapOnce(parts)
  const consumer = await mill.engine.consume({ types: [{ type: 'a', leaseMs: 1_000 }], worker: 'dying' })
  const lost = await consumer.settle([{ lease, outcome: { kind: 'complete', result: '1', durationMs: 1 } }])
  assert.equal(lost.length, 1)
  assert.equal((await mill.job(id))?.state, 'queued')
})

// B100 X009: a worker looks at once and then every 30 s, or up to a tenth sooner.
test('a worker reaps at its start and about every 30 s', async (t) => {
  const job = defineJob({ type: 'a', run: () => {} })
  const { mill, clock } = await staged(t, job)
  const passes: number[] = []
  mill.events.on('reaper.pass', () => void passes.push(clock.monotonicMs()))
  await mill.work([job])
  // The seeded random of this mill is 0: each interval is the shortest there is.
  await clock.advance('60s')
  assert.deepEqual(passes, [0, 27_000, 54_000])
})

// X007
test('a job of a worker that died is recovered within 90 s, and sooner where reap or its lease is shorter', async (t) => {
  for (const [reap, leaseMs, withinMs] of [
    [undefined, LEASE_DEFAULT_MS, 90_000],
    ['5s', LEASE_DEFAULT_MS, 65_000],
    ['5s', 10_000, 15_000],
  ] as const) {
    for (const diedAfterMs of [1, 6_001, 14_000]) {
      const clock = new TestClock()
      // Each interval is the longest there is.
      const mill = await open('memory:', { clock, random: () => 1 - Number.EPSILON, jobs: [orphan] })
      t.after(() => mill.close())
      await mill.keep({ jobs: [orphan], ...(reap && { reap }) })
      await clock.advance(diedAfterMs)
      await mill.enqueue(orphan, null)
      const consumer = await mill.engine.consume({ types: [{ type: 'orphan', leaseMs }], worker: 'dying' })
      await consumer.claim({ max: 1, waitMs: 0, signal: new AbortController().signal })
      const fromMs = clock.monotonicMs()
      let tookMs = Number.POSITIVE_INFINITY
      mill.events.on('lease.reaped', () => {
        tookMs = clock.monotonicMs() - fromMs
      })
      await clock.advance('2m')
      assert.ok(tookMs <= withinMs, `${reap} ${leaseMs} ${diedAfterMs}: ${tookMs} ms`)
    }
  }
})

test('reap: false leaves it to another process', async (t) => {
  const job = defineJob({ type: 'a', run: () => {} })
  const { mill, clock } = await staged(t, job)
  let passes = 0
  mill.events.on('reaper.pass', () => {
    passes += 1
  })
  await mill.work([job], { reap: false })
  await clock.advance('5m')
  assert.equal(passes, 0)
})

test('a failing pass is reported and the next one comes', async (t) => {
  const job = defineJob({ type: 'a', run: () => {} })
  const { mill, clock } = await staged(t, job)
  const consume = mill.engine.consume.bind(mill.engine)
  let faults = 1
  mill.engine.consume = (subscription) => {
    if (subscription.types !== 'every') return consume(subscription)
    faults -= 1
    return faults >= 0 ? Promise.reject(new Error('no consumer')) : consume(subscription)
  }
  const error = mill.events.next('keeper.error')
  const pass = mill.events.next('reaper.pass')
  await mill.work([job])
  assert.equal((await error).during, 'reap')
  await clock.advance('30s')
  await pass
})

test('a job of a queue with many names is recovered by the definition of its name', async (t) => {
  const mail = defineJob({ type: 'mail', backoff: { kind: 'fixed', delay: '7s' } })
  const queue = defineJob({ type: 'ruvbot', byName: [mail], backoff: { kind: 'fixed', delay: '5s' } })
  const { mill, clock, parts, reaped, abandon } = await staged(t, queue)
  const { id } = await mill.enqueue(queue, null, { name: 'mail' })
  await abandon('ruvbot', 1)
  await clock.advance(1_001)
  await reapOnce(parts)
  assert.equal((await mill.job(id))?.runAtMs, clock.nowMs() + 7_000)
  assert.equal(reaped[0]?.job.options?.name, 'mail')
})
