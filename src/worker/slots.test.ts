import assert from 'node:assert/strict'
import { test } from 'node:test'
import { open } from '../client/mill.ts'
import { defineJob } from '../job/definition.ts'
import { Slots, workedTypes } from './slots.ts'

const wide = defineJob({ type: 'wide', run: () => 1 })
const narrow = defineJob({ type: 'narrow', concurrency: 2, run: () => 1 })
const slotsOf = (...jobs: Parameters<typeof workedTypes>[0]) => new Slots(10, workedTypes(jobs))

test('a paused type has no room, whatever its own concurrency, and others are not bounded by it', () => {
  const slots = slotsOf(wide, narrow)
  assert.deepEqual(slots.room(), { narrow: 2 })
  assert.equal(slots.pause(new Set(['narrow', 'foreign'])), true)
  assert.deepEqual([slots.paused, slots.room()], [['narrow'], { narrow: 0 }])
  assert.equal(slots.startable(10, slots.room()), 10)
  assert.equal(slots.pause(new Set(['narrow', 'another'])), false)
  slots.pause(new Set(['wide']))
  assert.deepEqual(slots.room(), { narrow: 2, wide: 0 })
  assert.equal(slots.startable(10, slots.room()), 2)
})

test('nothing can start when every type is paused', () => {
  const slots = slotsOf(wide)
  assert.equal(slots.room(), undefined)
  slots.pause(new Set(['wide']))
  assert.equal(slots.startable(10, slots.room()), 0)
})

test('a claim is outdated when a type that it asks for is paused, and when one that it left out may go on', () => {
  const slots = slotsOf(wide, narrow)
  const before = slots.room()
  assert.equal(slots.isOutdated(before), false)
  slots.pause(new Set(['wide']))
  assert.equal(slots.isOutdated(before), true)
  const meanwhile = slots.room()
  assert.equal(slots.isOutdated(meanwhile), false)
  slots.pause(new Set())
  assert.equal(slots.isOutdated(meanwhile), true)
  const all = slotsOf(wide)
  assert.equal(all.isOutdated(undefined), false)
  all.pause(new Set(['wide']))
  assert.equal(all.isOutdated(undefined), true)
})

test('a worker has as many slots as the type that asks for most, at least 10, unless it is given a number', async (t) => {
  const twenty = defineJob({ type: 'twenty', concurrency: 20, run: () => 1 })
  for (const [jobs, options, expected] of [
    [[twenty, narrow], {}, 20],
    [[narrow], {}, 10],
    [[twenty], { concurrency: 3 }, 3],
  ] as const) {
    const mill = await open('memory:')
    t.after(() => mill.close())
    await mill.work(jobs, options)
    const [worker] = await mill.workers()
    assert.equal(worker?.concurrency, expected)
  }
})

test('limits that are set hold instead of the definition’s, and jobs of limited types are not claimed ahead', () => {
  const slots = slotsOf(wide, narrow)
  const rate = { max: 5, perMs: 1_000 }
  assert.deepEqual(slots.limit(new Map([['foreign', { concurrency: 1 }]])), [])
  const set = new Map([
    ['wide', { limit: rate }],
    ['narrow', { concurrency: null }],
  ])
  assert.deepEqual(slots.limit(set), [
    { type: 'wide', concurrency: null, limit: rate },
    { type: 'narrow', concurrency: null, limit: null },
  ])
  assert.deepEqual(
    [slots.limit(set), slots.room(), slots.isLimited('wide'), slots.isLimited('narrow')],
    [[], undefined, true, false],
  )
  assert.equal(slots.mayClaimAhead, false)
  slots.limit(new Map([['narrow', { concurrency: null }]]))
  assert.equal(slots.mayClaimAhead, true)
  slots.limit(new Map())
  assert.deepEqual(slots.room(), { narrow: 2 })
})

test('a job that was claimed before its type became narrow may start only while the type has room', () => {
  const slots = slotsOf(wide)
  const [type] = slots.types.values()
  assert.ok(type !== undefined)
  type.running = 2
  assert.equal(slots.mayHold(type), true)
  slots.limit(new Map([['wide', { concurrency: 3 }]]))
  assert.equal(slots.mayHold(type), true)
  type.running = 3
  assert.equal(slots.mayHold(type), false)
})
