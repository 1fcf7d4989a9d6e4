import assert from 'node:assert/strict'
import { test } from 'node:test'
import { prepareJobs } from '../client/prepare.ts'
import { isBeyondKeepLimit } from '../engine/retention.ts'
import { MemoryEngine } from '../engines/memory/engine.ts'
import { OptionError } from '../errors.ts'
import { defineJob } from './definition.ts'
import { checkAges, checkKeep, KEEP_MAX, type Keep, keepOf } from './keep.ts'
import { storedOptions } from './options.ts'
import { decide } from './policy.ts'

// A44 A45
test('true keeps none, a number so many, false all', () => {
  const bounds = ([true, 5, 0, KEEP_MAX, false] as const).map((option) => checkKeep(option, 'removeOnComplete'))
  assert.deepEqual(bounds, [0, 5, 0, KEEP_MAX, null])
})

test('what is no bound is refused with its name', () => {
  for (const bound of [-1, 1.5, Number.NaN, KEEP_MAX + 1]) {
    assert.throws(() => checkKeep(bound, 'removeOnFail'), {
      name: 'OptionError',
      message: new RegExp(`'removeOnFail' is ${bound}`),
    })
  }
})

// A53: field by field.
test("a job's own bound goes before its definition's, also when it keeps all", () => {
  assert.deepEqual(keepOf(undefined, 3), { keep: 3 })
  assert.deepEqual(keepOf(undefined, null), {})
  assert.deepEqual(keepOf(7, 3), { keep: 7, keepIsOwn: true })
  assert.deepEqual(keepOf(0, null), { keep: 0, keepIsOwn: true })
  assert.deepEqual(keepOf(null, 3), {})
})

test('a bound that another program has stored wrongly keeps all', () => {
  for (const own of ['0', -1, 0.5, true, {}]) assert.deepEqual(keepOf(own, 0), {})
})

test('both options travel with the job, and only if they were given', () => {
  assert.deepEqual(storedOptions({ removeOnComplete: true, removeOnFail: 5 }), { keepCompleted: 0, keepDead: 5 })
  assert.deepEqual(storedOptions({ removeOnComplete: false }), { keepCompleted: null })
  assert.equal(storedOptions({}), null)
})

test('a definition has both bounds resolved', () => {
  const bounded = defineJob({ type: 'a', removeOnComplete: 10, removeOnFail: true, retention: { ended: '1d' } })
  assert.deepEqual([bounded.keepCompleted, bounded.keepDead, bounded.retention], [10, 0, { ended: 86_400_000 }])
  const plain = defineJob({ type: 'a' })
  assert.deepEqual([plain.keepCompleted, plain.keepDead, plain.retention], [null, null, {}])
})

// X013
test('the dead letters of a critical type cannot be told to go by themselves', async () => {
  assert.throws(() => defineJob({ type: 'bill', critical: true, removeOnFail: 5 }), OptionError)
  assert.throws(() => defineJob({ type: 'bill', critical: true, retention: { dead: '30d' } }), /retention\.dead/)
  const critical = defineJob({ type: 'bill', critical: true, removeOnFail: false, retention: { dead: false } })
  assert.equal(critical.keepDead, null)
  const preparation = { engine: new MemoryEngine(), nowMs: 0, payloadBytesMax: 1_000 }
  await assert.rejects(prepareJobs(preparation, critical, [null], { removeOnFail: true }), /'bill', which is critical/)
})

test('ages are durations or false, and what was left out stays out', () => {
  assert.deepEqual(checkAges({ completed: '2d', dead: false }, 'retention'), { completed: 172_800_000, dead: null })
  assert.throws(() => checkAges({ ended: '7 days' as '7d' }, 'retention'), /'retention\.ended' is '7 days'/)
})

test('a verdict of death says how many of its type stay', () => {
  const failed = { attempt: 3, attempts: 3, backoff: { kind: 'fixed', delay: 0 }, error: new Error('x') } as const
  const keepOfVerdict = (keepDead?: Keep) => {
    const verdict = decide({ ...failed, ...(keepDead !== undefined && { keepDead }) }, () => 0)
    return verdict.kind === 'dead' ? [verdict.keep, verdict.keepIsOwn] : assert.fail(verdict.kind)
  }
  assert.deepEqual(keepOfVerdict({ keep: 5 }), [5, undefined])
  assert.deepEqual(keepOfVerdict({ keep: 0, keepIsOwn: true }), [0, true])
  assert.deepEqual(
    [keepOfVerdict({}), keepOfVerdict()],
    [
      [undefined, undefined],
      [undefined, undefined],
    ],
  )
})

test('a finished job goes only by its own bound, or by its definition if it has none', () => {
  assert.equal(isBeyondKeepLimit(undefined, 9, {}), true)
  assert.equal(isBeyondKeepLimit(undefined, 9, { keepIsOwn: true }), false)
  for (const keepIsOwn of [true, false]) {
    assert.equal(isBeyondKeepLimit(null, 9, { keepIsOwn }), false)
    assert.equal(isBeyondKeepLimit(9, 9, { keepIsOwn }), true)
    assert.equal(isBeyondKeepLimit(10, 9, { keepIsOwn }), false)
    assert.equal(isBeyondKeepLimit('0', 9, { keepIsOwn }), false)
  }
})
