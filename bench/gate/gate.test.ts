/** The gate compares what is measured now with what is published, and says which ratio fell. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { contenderResult, judge, type ScenarioResult } from '../result.ts'
import { findScenario } from '../scenarios/index.ts'
import { STANDARD } from '../sizes.ts'
import { entryOf } from '../testing/trial.ts'
import { compare, describeComparison, ratiosOf } from './compare.ts'

const machine = { cores: 2, processor: 'P', memoryGiB: 4, platform: 'linux', versions: {}, loadBefore: 0 }

/** A result on Redis with the given figures of Millrace; those of BullMQ are all 100. */
function onRedis(name: string, key: string, ours: readonly number[]): ScenarioResult {
  const scenario = findScenario(name)
  const roundsOf = (values: readonly number[]) => values.map((value) => ({ values: { [key]: value }, faults: [] }))
  const contenders = [
    contenderResult(entryOf('millrace-redis'), scenario, roundsOf(ours)),
    contenderResult(entryOf('bullmq'), scenario, roundsOf([100])),
  ]
  const { title, explanation, metrics } = scenario
  const about = { scenario: name, title, explanation, begun: '', machine, sizes: STANDARD, repeats: 0, metrics }
  return { ...about, contenders, targets: judge(scenario, contenders, 'redis') }
}

const published = (name: string, key: string, ...runs: readonly number[]) => ({
  scenario: name,
  runs: runs.map((value) => onRedis(name, key, [value])),
})

test('a ratio may lose a fifth of the middle published one, and no more', () => {
  const before = published('drain', 'rate', 140, 400, 150)
  const shares = [150, 121, 119].map((rate) => compare(before, onRedis('drain', 'rate', [rate]))[0])
  assert.deepEqual(
    shares.map((each) => each?.verdict),
    ['held', 'held', 'fell'],
  )
  const [, , fell] = shares
  assert.ok(fell)
  assert.equal(describeComparison(fell), '✗ FELL drained on Redis ≥ 1.5 × BullMQ: 1.19 ×, published 1.50 ×, 79 % of it')
})

test('a ratio that should be small falls by growing', () => {
  const before = published('pickup', 'p50', 80)
  const verdicts = [100, 101].map((p50) => compare(before, onRedis('pickup', 'p50', [p50]))[0]?.verdict)
  assert.deepEqual(verdicts, ['held', 'fell'])
})

test('unsteady rounds are compared, and an unsteady figure that is published is not', () => {
  const steady = published('drain', 'rate', 150)
  assert.equal(compare(steady, onRedis('drain', 'rate', [60, 100, 140]))[0]?.verdict, 'fell')
  const unsteady = { scenario: 'drain', runs: [onRedis('drain', 'rate', [100, 150, 200])] }
  const [comparison] = compare(unsteady, onRedis('drain', 'rate', [150]))
  assert.equal(comparison?.verdict, 'not compared')
})

test('only what compares two contenders is a ratio, and both are measured', () => {
  const ratios = ratiosOf(findScenario('drain-20k'), 'postgres')
  assert.deepEqual(
    ratios.map(({ contenders }) => contenders),
    [
      ['millrace-postgres', 'graphile-worker-tuned'],
      ['millrace-postgres', 'bare-postgres'],
    ],
  )
  assert.deepEqual(ratiosOf(findScenario('idle'), 'redis'), [])
})
