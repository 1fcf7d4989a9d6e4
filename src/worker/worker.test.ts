import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { z } from 'zod'
import { type Mill, open } from '../client/mill.ts'
import { defineJob } from '../job/definition.ts'
import { TestClock } from '../testing/test-clock.ts'
import { currentJob, currentTenant } from './context.ts'

async function opened(t: { after(run: () => Promise<void>): void }, clock?: TestClock): Promise<Mill> {
  const mill = await open('memory:', { random: () => 0, ...(clock && { clock }) })
  t.after(() => mill.close())
  return mill
}

/** A handler that runs until it is let go. */
function gate() {
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await turn()
}

// B87 B89 X112
test('a job is run with its payload and completed with its result', async (t) => {
  const mill = await opened(t)
  const double = defineJob({
    type: 'double',
    payload: z.object({ n: z.number() }),
    run: ({ payload }) => ({ doubled: payload.n * 2 }),
  })
  const worker = await mill.work([double])
  assert.match(worker.id, /^.+:\d+:[0-9a-f]{8}$/)
  const receipt = await mill.enqueue(double, { n: 21 })
  assert.deepEqual(await mill.result(receipt), { doubled: 42 })
  const view = await mill.job(receipt.id)
  assert.equal(view?.state, 'completed')
  assert.equal(view?.attempt, 1)
})

// X116
test('two workers of one process have different ids', async (t) => {
  const mill = await opened(t)
  const job = defineJob({ type: 'a', run: () => {} })
  const [one, two] = [await mill.work([job]), await mill.work([job])]
  assert.notEqual(one.id, two.id)
  assert.equal((await mill.work([job], { id: 'mine' })).id, 'mine')
})

test('what cannot be worked is refused at the door', async (t) => {
  const mill = await opened(t)
  const job = defineJob({ type: 'a', run: () => {} })
  const bare = defineJob({ type: 'bare' })
  await assert.rejects(mill.work([]), { code: 'ERR_OPTION_INVALID' })
  const twice = { code: 'ERR_OPTION_INVALID', message: /two definitions have the type 'a'/ }
  await assert.rejects(mill.work([job, defineJob({ type: 'a', run: () => {} })]), twice)
  // @ts-expect-error it has no handler
  await assert.rejects(mill.work([bare]), { code: 'ERR_HANDLER_MISSING', message: /handledBy/ })
  await mill.work([bare.handledBy(() => {})])
  for (const wrong of [{ concurrency: 0 }, { concurrency: 1.5 }, { poll: 0 }, { reap: 0 }, { id: '' }]) {
    await assert.rejects(mill.work([job], wrong), { code: 'ERR_OPTION_INVALID' }, JSON.stringify(wrong))
  }
})

// A54 X117
test('a worker claims only the types it was given', async (t) => {
  const mill = await opened(t)
  const mine = defineJob({ type: 'mine', run: () => 'ran' })
  const other = defineJob({ type: 'other' })
  const foreign = await mill.enqueue(other, null)
  await mill.work([mine])
  assert.equal(await mill.result(await mill.enqueue(mine, null)), 'ran')
  const view = await mill.job(foreign.id)
  assert.equal(view?.state, 'queued')
  assert.equal(view?.attempt, 0)
})

// A08 X071
test('no more handlers run at once than the concurrency, over all types, and all slots are used', async (t) => {
  const mill = await opened(t)
  const { opened: letGo, open: release } = gate()
  let active = 0
  const run = async (): Promise<void> => {
    active += 1
    await letGo
    active -= 1
  }
  const types = ['block', 'hold'].map((type) => defineJob({ type, run }))
  for (const type of types) await mill.enqueueMany(type, Array(30).fill(null))
  const worker = await mill.work(types, { concurrency: 50 })
  await until(() => active === 50)
  for (let turns = 0; turns < 20; turns += 1) await turn()
  assert.equal(active, 50)
  assert.equal(worker.running, 50)
  const { block, hold } = await mill.counts()
  assert.equal((block?.ready ?? 0) + (hold?.ready ?? 0), 10)
  release()
  await until(() => active === 0 && worker.running === 0)
})

test('a type with a concurrency of its own never exceeds it and leaves the other slots to others', async (t) => {
  const clock = new TestClock()
  const mill = await opened(t, clock)
  let active = 0
  let most = 0
  let ended = 0
  const narrow = defineJob({
    type: 'narrow',
    concurrency: 2,
    async run() {
      active += 1
      most = Math.max(most, active)
      await clock.sleep(10)
      active -= 1
      ended += 1
    },
  })
  let wideRan = 0
  const wide = defineJob({
    type: 'wide',
    run() {
      wideRan += 1
    },
  })
  await mill.enqueueMany(narrow, Array(10).fill(null), { priority: 1 })
  await mill.enqueueMany(wide, Array(100).fill(null), { priority: 9 })
  await mill.work([narrow, wide], { concurrency: 5, poll: '1h' })
  await until(() => wideRan === 100)
  assert.equal(most, 2)
  // Five rounds of 10 ms: a claim that waits under yesterday's bounds would need an hour each.
  await clock.advance(60)
  assert.equal(ended, 10)
  assert.equal(most, 2)
})

// A75
test('a rate limit holds and never stops the worker', async (t) => {
  const clock = new TestClock()
  const mill = await opened(t, clock)
  const starts: number[] = []
  const limited = defineJob({
    type: 'limited',
    limit: { max: 10, per: '1s' },
    run: () => void starts.push(clock.nowMs()),
  })
  await mill.enqueueMany(limited, Array(25).fill(null))
  await mill.work([limited], { concurrency: 50 })
  await clock.advance('4s')
  assert.equal(starts.length, 25)
  for (const start of starts) {
    assert.ok(starts.filter((other) => other >= start && other < start + 1_000).length <= 10)
  }
})

// A60 X032
test('tenants of concurrent jobs do not mix, and a job without one has none', async (t) => {
  const mill = await opened(t)
  const { opened: letGo, open: release } = gate()
  const seen: unknown[] = []
  const whose = defineJob({
    type: 'whose',
    async run({ payload }) {
      await letGo
      await turn()
      seen.push([payload, currentTenant()?.orgId ?? null, currentJob()?.type])
    },
  })
  await mill.enqueue(whose, 1, { tenant: { orgId: 'a' } })
  await mill.enqueue(whose, 2)
  await mill.enqueue(whose, 3, { tenant: { orgId: 'b', workspaceId: 'w' } })
  const worker = await mill.work([whose])
  await until(() => worker.running === 3)
  release()
  await until(() => seen.length === 3)
  assert.deepEqual(seen, [
    [1, 'a', 'whose'],
    [2, null, 'whose'],
    [3, 'b', 'whose'],
  ])
  assert.equal(currentJob(), null)
  assert.equal(currentTenant(), null)
})

test('what a worker does between jobs belongs to none of them, and sees what its starter saw', async (t) => {
  const mill = await opened(t)
  const asked = new AsyncLocalStorage<string>()
  const seen: unknown[] = []
  const saw = (where: string): void => void seen.push([where, currentJob()?.id ?? null, asked.getStore()])
  const quick = defineJob({ type: 'quick', run: () => saw('run') })
  mill.events.on('job.started', () => saw('started'))
  mill.events.on('job.settled', () => saw('settled'))
  const ids = (await mill.enqueueMany(quick, [1, 2])).map(({ id }) => id)
  await asked.run('at start', () => mill.work([quick], { concurrency: 1 }))
  await until(() => seen.length === 6)
  assert.deepEqual(
    seen.filter((each) => Array.isArray(each) && each[0] === 'run'),
    ids.map((id) => ['run', id, 'at start']),
  )
  for (const where of ['started', 'settled']) {
    const told = seen.filter((each) => Array.isArray(each) && each[0] === where)
    assert.deepEqual(told, [
      [where, null, 'at start'],
      [where, null, 'at start'],
    ])
  }
})

test('handlers that end at once follow each other without a call within a call', async (t) => {
  const mill = await opened(t)
  const depths: number[] = []
  Error.stackTraceLimit = 200
  t.after(() => {
    Error.stackTraceLimit = 10
  })
  const depth = (): number => new Error('depth').stack?.split('\n').length ?? 0
  const quick = defineJob({ type: 'quick', run: () => void depths.push(depth()) })
  await mill.enqueueMany(quick, Array(2_000).fill(null))
  await mill.work([quick], { concurrency: 1 })
  await until(() => depths.length === 2_000)
  assert.ok(Math.max(...depths) < 40, `a handler ran ${Math.max(...depths)} calls deep`)
})

// B86
test('an idle worker asks once per poll', async (t) => {
  const clock = new TestClock()
  const mill = await opened(t, clock)
  const consume = mill.engine.consume.bind(mill.engine)
  let claims = 0
  t.mock.method(mill.engine, 'consume', async (subscription: Parameters<typeof consume>[0]) => {
    const consumer = await consume(subscription)
    const claim = consumer.claim.bind(consumer)
    consumer.claim = (request) => {
      if (request.from !== 'expired') claims += 1
      return claim(request)
    }
    return consumer
  })
  await mill.work([defineJob({ type: 'idle', run: () => {} })])
  await clock.advance('10s')
  assert.ok(claims >= 9 && claims <= 12, `${claims} claims in 10 s`)
})

test('short jobs are claimed ahead of their slots, and all of them are run exactly once', async (t) => {
  const mill = await opened(t)
  const asked: number[] = []
  const consume = mill.engine.consume.bind(mill.engine)
  t.mock.method(mill.engine, 'consume', async (subscription: Parameters<typeof consume>[0]) => {
    const consumer = await consume(subscription)
    const claim = consumer.claim.bind(consumer)
    consumer.claim = (request) => {
      if (request.from !== 'expired') asked.push(request.max)
      return claim(request)
    }
    return consumer
  })
  const runs = new Map<string, number>()
  const short = defineJob({ type: 'short', run: ({ job }) => void runs.set(job.id, (runs.get(job.id) ?? 0) + 1) })
  await mill.enqueueMany(short, Array(3_000).fill(null))
  await mill.work([short], { concurrency: 10 })
  await until(() => runs.size === 3_000)
  assert.ok([...runs.values()].every((count) => count === 1))
  assert.ok(Math.max(...asked) > 10, `asked for ${Math.max(...asked)} at most`)
  assert.ok(Math.max(...asked) <= 10 + 256)
})

test('a claimed job that cannot start soon is given back without using an attempt', async (t) => {
  const clock = new TestClock()
  const { opened: letGo, open: release } = gate()
  t.after(release)
  const mill = await opened(t, clock)
  let slow = false
  const job = defineJob({ type: 'moody', run: () => (slow ? letGo : undefined) })
  await mill.enqueueMany(job, Array(100).fill(null))
  const released: string[] = []
  let completed = 0
  mill.events.on('job.settled', ({ job: { id }, outcome }) => {
    if (outcome.kind === 'release') released.push(id)
    if (outcome.kind === 'complete') completed += 1
  })

  const worker = await mill.work([job], { concurrency: 5 })
  await until(() => completed === 100)
  slow = true
  await mill.enqueueMany(job, Array(40).fill(null))
  await until(() => worker.running === 5)
  await clock.advance(100)
  const counts = (await mill.counts()).moody
  assert.equal(counts?.inProgress, 5)
  assert.equal(counts?.ready, 35)
  assert.ok(released.length > 0)
  const [first] = released
  assert.equal((await mill.job(first ?? ''))?.attempt, 0)
})
