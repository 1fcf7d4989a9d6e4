import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspectorOf, pausesOf } from '../engine/capability-checks.ts'
import type { Engine, Inspector } from '../engine/engine.ts'
import { ClosedError, EngineError, Postpone, UnknownJobError, UnsupportedError } from '../errors.ts'
import { defineJob } from '../job/definition.ts'
import { drain } from '../testing/drain.ts'
import { openForTest } from '../testing/open-for-test.ts'
import { explainJob } from './explain.ts'
import { graphOf } from './graph.ts'

const mail = defineJob({ type: 'mail' })

type Parts = { readonly [Name in keyof Engine]?: Engine[Name] | undefined }

/** An engine in which single parts answer differently. */
function altered(engine: Engine, parts: Parts): { readonly engine: Engine } {
  return {
    engine: new Proxy(engine, {
      get: (target, name) => (name in parts ? Reflect.get(parts, name) : bound(target, Reflect.get(target, name))),
    }),
  }
}

function bound(target: Engine, member: unknown): unknown {
  return typeof member === 'function' ? member.bind(target) : member
}

const broken = (): never => {
  throw new EngineError('ERR_STORAGE_FAILED', 'the disk is gone')
}

test('an id that nobody knows, an engine that looks up nothing and a closed mill are no explanations', async () => {
  const { mill, close } = await openForTest()
  await assert.rejects(explainJob(mill, 'absent'), UnknownJobError)
  await assert.rejects(explainJob(altered(mill.engine, { ping: async () => broken() }), 'absent'), UnknownJobError)
  await assert.rejects(graphOf(mill, 'absent'), UnknownJobError)
  const blind = altered(mill.engine, { inspector: undefined })
  await assert.rejects(explainJob(blind, 'absent'), UnsupportedError)
  await close()
  await assert.rejects(explainJob(mill, 'absent'), ClosedError)
})

// X100
test('a job that its handler postponed is explained with the handler’s reason', async () => {
  await using stage = await openForTest()
  const { mill, clock } = stage
  const confirm = defineJob({
    type: 'confirm',
    attempts: 1,
    run: () => {
      throw new Postpone('12s', 'waiting for 2 confirmations')
    },
  })
  const { id } = await mill.enqueue(confirm, null)
  await drain(mill, [confirm])
  const { because, text, untilMs } = await explainJob(mill, id, { clock })
  assert.equal(because, 'delayed')
  assert.match(text, /^It is delayed until \S+ \(in 12s\), postponed by its handler: waiting for 2 confirmations\.$/)
  assert.equal(untilMs, clock.nowMs() + 12_000)
})

// X119
test('a job that waits for workers with ageing is explained with what its priority counts as', async () => {
  await using stage = await openForTest()
  const { mill, clock } = stage
  const hold = Promise.withResolvers<void>()
  const held = defineJob({ type: 'mail', run: () => hold.promise })
  const worker = await mill.work([held], { concurrency: 1, ageing: '10m' })
  const running = await mill.enqueue(held, null)
  await clock.advance('1s')
  const at = new Date(clock.nowMs() - 25 * 60_000)
  const { id } = await mill.enqueue(held, null, { priority: 10, at })
  await mill.enqueue(held, null, { priority: 9 })
  const { also } = await explainJob(mill, id, { clock })
  assert.ok(also.includes('It has been due for 25m, so its priority 10 counts as 8: its workers raise jobs that wait.'))
  assert.ok(!also.some((text) => text.includes('come first')), 'the one of priority 9 does not come first')
  hold.resolve()
  await mill.result(running)
  await worker.stop()
})

test('an engine that does not answer is the explanation, and one that answers wrongly is not', async () => {
  await using stage = await openForTest()
  const { mill, clock } = stage
  const inspector = { ...inspectorOf(mill.engine), find: async () => broken() }
  const down = await explainJob(altered(mill.engine, { inspector, ping: async () => broken() }), 'x', { clock })
  assert.equal(down.because, 'engine-down')
  assert.equal(down.text, 'The memory engine does not answer: the disk is gone. Nothing starts until it does.')
  await assert.rejects(explainJob(altered(mill.engine, { inspector }), 'x', { clock }), EngineError)
})

test('an engine that hangs is asked no longer than a few seconds', async () => {
  await using stage = await openForTest()
  const { mill, clock } = stage
  const never = (): Promise<never> => new Promise(() => {})
  const inspector = { ...inspectorOf(mill.engine), find: never }
  const asked = explainJob(altered(mill.engine, { inspector, ping: never }), 'x', { clock })
  await clock.advance('6s')
  assert.match((await asked).text, /does not answer: .*a ping of the engine/)
})

test('what a facet cannot say is left out', async () => {
  await using stage = await openForTest()
  const { mill, clock } = stage
  const { id } = await mill.enqueue(mail, {})
  const bare = await explainJob(altered(mill.engine, { records: undefined }), id, { clock })
  assert.equal(bare.because, 'due')
  assert.match(bare.text, /this engine does not know its workers\.$/)
  const records = { list: broken, save: broken, put: broken, remove: broken }
  assert.deepEqual(await explainJob(altered(mill.engine, { records }), id, { clock }), bare)
})

test('a worker whose slots are taken, by jobs that are named, and one that has gone', async () => {
  await using stage = await openForTest()
  const { mill, clock } = stage
  const { promise, resolve } = Promise.withResolvers<void>()
  const slow = defineJob({ type: 'slow', run: () => promise })
  const holder = await mill.enqueue(slow, {})
  const waiting = await mill.enqueue(slow, {})
  const begun = mill.events.next('job.started')
  const worker = await mill.work([slow], { concurrency: 1, id: 'w1' })
  await begun
  // Its next beat tells what it runs.
  await clock.advance('20s')
  const busy = await explainJob(mill, waiting.id, { clock })
  assert.equal(busy.because, 'slots-busy')
  assert.match(busy.text, /^All slots of 1 worker of its type were taken at their last heartbeat \(w1\), by 'slow' /)
  assert.deepEqual(busy.jobs, [{ id: holder.id, type: 'slow', state: 'in_progress' }])
  assert.equal((await explainJob(mill, holder.id, { clock })).because, 'running')

  resolve()
  await mill.result(waiting.id)
  await worker.stop()
  const late = await mill.enqueue(slow, {})
  const nobody = await explainJob(mill, late.id, { clock })
  assert.equal(nobody.because, 'no-worker')
  assert.equal(nobody.text, "No worker runs 'slow'. Start one with its handler.")
})

test('a rate limit that is reached, by whom, and until when', async () => {
  await using stage = await openForTest()
  const { mill, clock } = stage
  const limited = defineJob({ type: 'mail', limit: { max: 2, per: '1m' }, run: () => null })
  const ids = (await mill.enqueueMany(limited, [1, 2, 3])).map(({ id }) => id)
  const startMs = clock.nowMs()
  await mill.work([limited], { id: 'w1' })
  await clock.advance('10s')
  const third = await explainJob(mill, ids[2] ?? '', { clock, jobs: [limited] })
  assert.equal(third.because, 'limit-reached')
  assert.equal(third.untilMs, startMs + 60_000)
  assert.deepEqual(third.jobs.map(({ id }) => id).sort(), ids.slice(0, 2).sort())
  const unknown = await explainJob(mill, ids[2] ?? '', { clock })
  assert.equal(unknown.because, 'due')
  assert.match(unknown.also.join('\n'), /^2 jobs of its type started in the last 1m; if its definition has a limit/)
})

test('all slots of a tenant are taken, by whom, with the definition or from the heartbeats of workers', async () => {
  await using stage = await openForTest()
  const { mill, clock } = stage
  const sync = defineJob({ type: 'sync', concurrency: { max: 1, by: 'tenant' }, run: () => new Promise(() => {}) })
  const tenant = { orgId: 'acme' }
  const [first, second] = (await mill.enqueueMany(sync, [1, 2], { tenant })).map(({ id }) => id)
  const [bare, last] = (await mill.enqueueMany(sync, [3, 4])).map(({ id }) => id)
  await mill.work([sync], { id: 'w1', drain: 0 })
  await clock.advance('10s')
  for (const jobs of [[sync], []]) {
    const waits = await explainJob(mill, second ?? '', { clock, jobs })
    assert.deepEqual([waits.because, waits.untilMs, waits.jobs.map(({ id }) => id)], ['slots-taken', null, [first]])
    assert.match(waits.text, /^The only slot of its tenant 'acme' over all workers is taken, by 'sync' /)
    const without = await explainJob(mill, last ?? '', { clock, jobs })
    assert.deepEqual([without.because, without.jobs.map(({ id }) => id)], ['slots-taken', [bare]])
    assert.match(without.text, /of jobs without a tenant/)
  }
})

test('a job with several reasons may start when the last of them ends, if that is known', async () => {
  await using stage = await openForTest()
  const { mill, clock } = stage
  const { id } = await mill.enqueue(mail, {}, { delay: '1h' })
  assert.equal((await explainJob(mill, id, { clock })).untilMs, clock.nowMs() + 3_600_000)
  await pausesOf(mill.engine).pause('mail', { who: 'ann', reason: 'repairs' })
  const paused = await explainJob(mill, id, { clock })
  assert.deepEqual([paused.because, paused.untilMs], ['delayed', null])
  assert.match(paused.also.join('\n'), /was paused by ann at 2026-01-01T00:00:00\.000Z \(0 ms ago\), "repairs"/)
})

test('the graph is bounded, meets each job once and leaves out what is gone', async () => {
  await using stage = await openForTest()
  const { mill } = stage
  const first = await mill.enqueue(mail, {})
  const many = await mill.enqueueMany(mail, Array(250).fill({}), { after: first })
  const last = await mill.enqueue(mail, {}, { after: [...many.slice(0, 3), first] })
  const before = [...many.slice(0, 3), first].map(({ id }) => id)
  const idsOf = async (of: Parameters<typeof graphOf>[0]) => (await graphOf(of, last.id)).map(({ id }) => id)
  assert.deepEqual(await idsOf(mill), before)
  const inspector = inspectorOf(mill.engine)
  const find: Inspector['find'] = async (ids) =>
    (await inspector.find(ids)).map((job) => (job?.id === first.id ? null : job))
  assert.deepEqual(await idsOf(altered(mill.engine, { inspector: { ...inspector, find } })), before.slice(0, 3))

  const wide = await mill.enqueue(mail, {}, { after: many })
  assert.equal((await graphOf(mill, wide.id)).length, 200)
  const { text, jobs } = await explainJob(mill, wide.id)
  assert.match(text, /^It waits for at least 200 of 250 jobs: /)
  assert.equal(jobs.length, 20)
})
