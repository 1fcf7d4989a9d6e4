import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Mill } from '../client/mill.ts'
import type { Engine } from '../engine/engine.ts'
import type { Sweep, SweepStep } from '../engine/retention.ts'
import { MemoryEngine } from '../engines/memory/engine.ts'
import { Events } from '../events.ts'
import { defineJob } from '../job/definition.ts'
import { TestClock } from '../testing/test-clock.ts'
import type { Duration } from '../time/duration.ts'
import { checkPolicy, type RetentionPolicy, retainOnce, rulesOf, sweepOnce } from './retention.ts'

const DAY_MS = 86_400_000

describe('the rules of a policy', () => {
  const rules = (policy: RetentionPolicy, jobs: Parameters<typeof rulesOf>[1] = []) =>
    rulesOf(policy, jobs, 100 * DAY_MS).map(({ what, type, beforeMs }) => [
      what,
      type ?? '*',
      beforeMs === null ? null : beforeMs / DAY_MS,
    ])

  // B167
  test('keep completed and ended jobs for seven days and dead letters for ever by default', () => {
    assert.deepEqual(rules({}), [
      ['completed', '*', 93],
      ['ended', '*', 93],
      ['dead', '*', null],
    ])
  })

  test('follow the policy, and false keeps for ever', () => {
    assert.deepEqual(rules({ completed: '1d', ended: false, dead: '30d' }), [
      ['completed', '*', 99],
      ['ended', '*', null],
      ['dead', '*', 70],
    ])
  })

  test('take the ages of definitions, and above them those of the policy for a type', () => {
    const jobs = [defineJob({ type: 'a', retention: { completed: '1d', ended: '2d' } }), defineJob({ type: 'b' })]
    assert.deepEqual(rules({ types: { a: { completed: '3d' }, c: { dead: '5d' } } }, jobs).slice(3), [
      ['completed', 'a', 97],
      ['ended', 'a', 98],
      ['dead', 'c', 95],
    ])
  })

  // X013
  test('never give up dead letters of a critical type, unless the policy names it', () => {
    const jobs = [defineJob({ type: 'bill', critical: true })]
    assert.deepEqual(rules({ dead: '30d' }, jobs).at(-1), ['dead', 'bill', null])
    assert.deepEqual(rules({ dead: '30d', types: { bill: { dead: '365d' } } }, jobs).at(-1), ['dead', 'bill', -265])
  })

  test('are refused when the policy makes no sense', () => {
    const wrong: readonly RetentionPolicy[] = [
      { bytes: 0 },
      { bytes: 1.5 },
      { completed: 'soon' as Duration },
      { types: { a: { dead: -1 } } },
    ]
    for (const policy of wrong) assert.throws(() => checkPolicy(policy), { name: 'OptionError' })
    checkPolicy({ bytes: 1_000_000, completed: false })
  })
})

/** Completed jobs of a type, on the memory engine and its own time. */
async function filled(count: number, type = 'a', payload = 'x') {
  const clock = new TestClock()
  const engine = new MemoryEngine({ clock })
  const events = new Events()
  const mill = new Mill(engine, { clock })
  const complete = async (): Promise<void> => {
    await mill.enqueueMany(
      defineJob({ type }),
      Array.from({ length: count }, () => payload),
    )
    const consumer = await engine.consume({ types: [{ type, leaseMs: 60_000 }], worker: 'host:1:1' })
    const leases = await consumer.claim({ max: count, waitMs: 0, signal: new AbortController().signal })
    await consumer.settle(leases.map((lease) => ({ lease, outcome: { kind: 'complete', result: '1', durationMs: 1 } })))
  }
  await complete()
  return { clock, engine, events, complete, left: async () => (await engine.counts())[type]?.completed ?? 0 }
}

/** Lets time pass until `work` is done. */
async function passing<Value>(clock: TestClock, work: Promise<Value>): Promise<Value> {
  let done = false
  void work.finally(() => {
    done = true
  })
  await nextTurn()
  while (!done) await clock.advance(10)
  return work
}

describe('a pass', () => {
  test('removes what the policy gives up, in steps, and tells how many', async () => {
    const { clock, engine, events, complete, left } = await filled(600)
    await clock.advance('8d')
    await complete()
    const told = events.next('retention.pass')
    assert.deepEqual(await passing(clock, retainOnce({ engine, clock, events })), {
      removed: 600,
      evicted: 0,
      interrupted: false,
    })
    assert.equal(await left(), 600)
    const { removed, evicted } = await told
    assert.deepEqual([removed, evicted], [600, 0])
  })

  test('removes completed jobs of any age when they take too much, the oldest first, and no more than it must', async () => {
    const { clock, engine, events, complete, left } = await filled(500, 'a', 'x'.repeat(1_000))
    await complete()
    const full = await engine.retention.usedBytes()
    const { evicted, removed } = await passing(clock, retainOnce({ engine, clock, events }, { bytes: full * 0.7 }))
    assert.equal(removed, 0)
    assert.equal(evicted, 500, 'two steps of 250')
    assert.equal(await left(), 500)
    assert.ok((await engine.retention.usedBytes()) <= full * 0.7)
  })

  test('leaves a type alone that is kept for ever, however much it takes', async () => {
    const { clock, engine, events, left } = await filled(100)
    const policy: RetentionPolicy = { bytes: 1, types: { a: { completed: false } } }
    assert.equal((await passing(clock, retainOnce({ engine, clock, events }, policy))).evicted, 0)
    assert.equal(await left(), 100)
  })

  test('ends between two steps when it is told to, and the next one goes on', async () => {
    const { clock, engine, events, left } = await filled(1_000)
    await clock.advance('8d')
    const stop = new AbortController()
    const first = retainOnce({ engine: stopping(engine, stop, 2), clock, events }, {}, stop.signal)
    assert.deepEqual(await passing(clock, first), { removed: 500, evicted: 0, interrupted: true })
    assert.equal(await left(), 500)
    await passing(clock, retainOnce({ engine, clock, events }))
    assert.equal(await left(), 0)
  })

  test('rests after each step for at least as long as the step took', async () => {
    const { clock, engine, events } = await filled(500)
    await clock.advance('8d')
    const tookMs = 40
    const beganMs: number[] = []
    const slow = swept(engine, async (sweep) => {
      beganMs.push(clock.nowMs())
      await clock.sleep(tookMs)
      return sweep()
    })
    await passing(clock, retainOnce({ engine: slow, clock, events }))
    const [first = 0, second = 0] = beganMs
    assert.ok(second - first >= 2 * tookMs, `${second - first} ms from one step to the next`)
  })

  test('by hand counts in a dry run and removes nothing', async () => {
    const { clock, engine, left } = await filled(300)
    const rules = [{ what: 'completed', beforeMs: clock.nowMs() + 1 }] as const
    const shown: number[] = []
    const onProgress = (count: number): void => void shown.push(count)
    assert.equal(await passing(clock, sweepOnce({ engine, clock }, rules, { dryRun: true, onProgress })), 300)
    assert.deepEqual([shown, await left()], [[250, 300], 300])
    assert.equal(await passing(clock, sweepOnce({ engine, clock }, rules)), 300)
    assert.equal(await left(), 0)
  })
})

function swept(engine: Engine, around: (sweep: () => Promise<Sweep>) => Promise<Sweep>): Engine {
  const { retention } = engine
  assert.ok(retention)
  const altered = {
    ...retention,
    sweep: (rules: Parameters<typeof retention.sweep>[0], step: SweepStep) =>
      around(() => retention.sweep(rules, step)),
  }
  return new Proxy(engine, { get: (target, name) => (name === 'retention' ? altered : Reflect.get(target, name)) })
}

/** Aborts after so many steps. */
function stopping(engine: Engine, stop: AbortController, steps: number): Engine {
  let made = 0
  return swept(engine, async (sweep) => {
    const answer = await sweep()
    made += 1
    if (made === steps) stop.abort()
    return answer
  })
}
