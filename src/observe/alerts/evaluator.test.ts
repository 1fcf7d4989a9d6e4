import assert from 'node:assert/strict'
import { test } from 'node:test'
import { at, breach, rigged, told } from '../../../test/fixtures/alerting.ts'
import { Evaluator } from './evaluator.ts'
import type { AlertRule } from './rule.ts'

// X089
test('an alert is pending, fires after its time, is repeated, and is resolved', () => {
  const { rule, says } = rigged({ for: '2m' })
  const evaluator = new Evaluator([rule], 600_000)
  const step = (minutes: number) => told(evaluator.step(at(minutes * 60_000)))
  const state = () => evaluator.current().map(({ status, sinceMs, value }) => [status, sinceMs / 60_000, value])
  assert.deepEqual(step(0), [])
  says(breach(5))
  assert.deepEqual(step(1), [])
  assert.deepEqual(state(), [['pending', 1, 5]])
  says(breach(6))
  assert.deepEqual(step(2.9), [])
  assert.deepEqual(step(3), ['firing 6'])
  assert.deepEqual(state(), [['firing', 1, 6]])
  assert.deepEqual(
    [step(4), step(12.9), step(13), step(22), step(23)],
    [[], [], ['still firing 6'], [], ['still firing 6']],
  )
  says()
  assert.deepEqual(step(24), ['resolved 6'])
  assert.deepEqual(state(), [['resolved', 1, 6]])
  assert.partialDeepStrictEqual(evaluator.current(), [
    { firedAtMs: 180_000, resolvedAtMs: 1_440_000, severityLabel: 'ERROR' },
  ])
  assert.deepEqual(step(25), [])
  says(breach(7))
  step(30)
  assert.deepEqual(step(32), ['firing 7'], 'after it was resolved it is news again')
  assert.equal(evaluator.current().length, 1)
})

test('what ends while it is pending was nothing', () => {
  const { rule, says } = rigged({ for: '2m' })
  const evaluator = new Evaluator([rule], 600_000)
  says(breach(1))
  evaluator.step(at(0))
  says()
  assert.deepEqual(evaluator.step(at(60_000)), [])
  says(breach(1))
  evaluator.step(at(90_000))
  assert.deepEqual(evaluator.step(at(150_000)), [], 'its time begins anew')
  assert.deepEqual(told(evaluator.step(at(210_000))), ['firing 1'])
})

// X170
test('what cannot be said changes nothing, also where a rule throws', () => {
  const errors: unknown[] = []
  const { rule, says, cannotSay } = rigged()
  const broken: AlertRule = {
    name: 'broken',
    severity: 'info',
    evaluate: () => {
      throw new Error('a typo')
    },
  }
  const evaluator = new Evaluator([broken, rule], 600_000, (_rule, error) => errors.push(error))
  says(breach(1))
  assert.deepEqual(told(evaluator.step(at(0))), ['firing 1'])
  cannotSay()
  assert.deepEqual(evaluator.step(at(1)), [])
  assert.deepEqual(
    evaluator.current().map(({ status }) => status),
    ['firing'],
  )
  assert.equal(errors.length, 2)
})

test('breaches are told apart by their labels, in any order', () => {
  const { rule, says } = rigged()
  const evaluator = new Evaluator([rule], 600_000)
  says(breach(1, { type: 'a', topic: 'x' }), breach(2, { type: 'b', topic: 'x' }))
  assert.deepEqual(told(evaluator.step(at(0))), ['firing 1', 'firing 2'])
  says(breach(3, { topic: 'x', type: 'b' }))
  assert.deepEqual(told(evaluator.step(at(1))), ['resolved 1'])
  says()
  assert.deepEqual(told(evaluator.step(at(2))), ['resolved 3'])
})

test('only the last hundred resolved alerts are remembered', () => {
  const { rule, says } = rigged()
  const evaluator = new Evaluator([rule], 600_000)
  for (let index = 0; index < 105; index += 1) {
    says(breach(index, { type: `t${index}` }))
    evaluator.step(at(index))
  }
  says()
  evaluator.step(at(200))
  const resolved = evaluator.current()
  assert.deepEqual([resolved.length, resolved[0]?.value, resolved.at(-1)?.value], [100, 104, 5])
})
