/** The harness itself: what it measures is checked, and what lies is caught. */
import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { describe, test } from 'node:test'
import { seededRandom } from '../src/testing/open-for-test.ts'
import { Ledger } from './ledger.ts'
import { readOptions, UsageError } from './options.ts'
import { FILLED_PAYLOAD, makePayload, PAYLOAD_BYTES } from './payload.ts'
import { exitCodeOf } from './result.ts'
import { SCENARIOS } from './scenarios/index.ts'
import { STANDARD, STANDARD_OF_SERVERS } from './sizes.ts'
import { median, percentile } from './statistics.ts'
import { type Lie, lyingEntry, waveringFile } from './testing/lying-contender.ts'
import { assertSound, entryOf, run } from './testing/trial.ts'

describe('the harness', { concurrency: 2 }, () => {
  // Two at a time, because most of each is waiting for processes to start.
  const everything = [
    ['enqueue', 'enqueue-20k', 'drain', 'drain-20k', 'pickup', 'work', 'idle'],
    ['processes', 'processes-20k', 'claim', 'memory', 'retention', 'millions', 'start'],
  ]
  for (const scenarios of everything) {
    // B172
    test(`finds every delivery on SQLite: ${scenarios.join(', ')}`, { timeout: 300_000 }, async () => {
      const { results } = await run({ scenarios, contenders: [entryOf('millrace-full')] })
      assert.equal(results.length, scenarios.length)
      assertSound(results)
    })
  }

  test('leaves no scenario untried', () => {
    const all = SCENARIOS.filter((each) => each.families?.includes('sqlite') ?? true)
    assert.deepEqual(everything.flat().toSorted(), all.map((each) => each.name).toSorted())
  })

  test('measures the bare store and memory in turn, round after round', {
    timeout: 300_000,
  }, async () => {
    const contenders = [entryOf('bare-store'), entryOf('millrace-memory')]
    const { results, order } = await run({ scenarios: ['drain'], contenders, rounds: 2 })
    assertSound(results)
    const names = order.map((line) => line.split(' · ')[1])
    assert.deepEqual(names, ['bare-store', 'millrace-memory', 'bare-store', 'millrace-memory'])
    assert.deepEqual(
      results[0]?.contenders.map((contender) => contender.rounds.length),
      [2, 2],
    )
  })

  test('makes all rounds anew where they differ by too much, so often and no more', { timeout: 120_000 }, async (t) => {
    t.after(() => rmSync(waveringFile(process.pid), { force: true }))
    const contenders = [lyingEntry('wavers'), lyingEntry('honest')]
    const { results, order } = await run({ scenarios: ['drain'], contenders, rounds: 2, repeatsMax: 1 })
    const [result] = results
    assert.equal(result?.repeats, 1)
    assert.equal(result?.contenders[0]?.figures.rate?.isSteady, false)
    assert.deepEqual(
      result?.contenders.map(({ rounds }) => rounds.length),
      [2, 2],
      'only the last attempt counts',
    )
    const measured = order.filter((line) => line.startsWith('drain · '))
    assert.equal(measured.length, 8)
    assert.match(order.find((line) => line.startsWith('drain, ')) ?? '', /lying-wavers: drained differs by \d+ %/)
    assert.equal(exitCodeOf(results, false), 0, 'it delivered everything')
  })

  test('leaves out a contender that is excused, and says why', async () => {
    const { results } = await run({ scenarios: ['pickup'], contenders: [entryOf('millrace-memory')] })
    assert.equal(results[0]?.contenders[0]?.excused, 'lives in one process')
    assert.deepEqual(results[0]?.contenders[0]?.rounds, [])
    assert.equal(results[0]?.targets[0]?.verdict, 'not measured')
  })

  const caught: readonly [Lie, RegExp][] = [
    ['loses', /^1 of 330 jobs missing, first 123$/],
    ['doubles', /^1 repeated deliveries, first of job 123$/],
    ['invents', /^1 deliveries of jobs that nobody enqueued$/],
    ['leaves', /^1 jobs are still due or running after all was drained$/],
    ['throws', /the worker would not start/],
    ['hangs', /^did not end within 2000 ms of its measurement$/],
  ]
  for (const [lie, sentence] of caught) {
    test(`catches a contender that ${lie}`, { timeout: 120_000 }, async () => {
      const contenders = [lyingEntry(lie)]
      const endMsMax = lie === 'hangs' ? 2_000 : 60_000
      const { results } = await run({ scenarios: ['drain'], contenders, sizes: { stallMs: 1_000 }, endMsMax })
      const contender = results[0]?.contenders[0]
      assert.match(contender?.rounds[0]?.faults[0] ?? 'no fault', sentence)
      assert.deepEqual(contender?.figures, {}, 'a failed round has no speed')
      assert.equal(exitCodeOf(results, false), 1)
    })
  }

  test('believes the same contender when it is honest', { timeout: 120_000 }, async () => {
    const { results } = await run({ scenarios: ['drain', 'enqueue'], contenders: [lyingEntry('honest')] })
    assertSound(results)
    assert.equal(exitCodeOf(results, false), 0)
  })
})

test('a ledger waits for the count it was asked for and no longer than deliveries come', async () => {
  const ledger = new Ledger(3)
  const reached = ledger.reach(2, 60_000)
  ledger.deliver(0)
  ledger.deliver(0)
  ledger.deliver(2)
  await reached
  assert.equal(ledger.distinct, 2)
  await ledger.reach(3, 20)
  assert.deepEqual(ledger.faults(), ['1 of 3 jobs missing, first 1', '1 repeated deliveries, first of job 0'])
  assert.deepEqual(ledger.faultsOfPart(), ['1 repeated deliveries, first of job 0'])
})

test('percentiles are values that were measured; medians lie in the middle', () => {
  const sample = Array.from({ length: 100 }, (_, index) => 100 - index)
  assert.deepEqual(
    [50, 95, 99, 100].map((share) => percentile(sample, share)),
    [50, 95, 99, 100],
  )
  assert.equal(percentile([5, 1, 2, 3], 60), 3)
  assert.equal(percentile([7], 1), 7)
  assert.ok(Number.isNaN(percentile([], 50)))
  assert.equal(median([9, 1, 5]), 5)
  assert.equal(median([9, 1, 5, 3]), 4)
})

test('a seed gives the same numbers again, from 0 up to 1', () => {
  const draw = (seed: number): number[] => Array.from({ length: 1_000 }, seededRandom(seed))
  assert.deepEqual(draw(7), draw(7))
  assert.notDeepEqual(draw(7), draw(8))
  assert.ok(draw(7).every((value) => value >= 0 && value < 1))
  assert.ok(Math.abs(draw(7).reduce((sum, value) => sum + value) / 1_000 - 0.5) < 0.05)
})

test('every payload has 200 bytes, whatever its number', async () => {
  for (const payload of [makePayload(0), makePayload(1_234_567), makePayload(3, performance.timeOrigin + 0.1234)]) {
    assert.equal(JSON.stringify(payload).length, PAYLOAD_BYTES)
  }
  const { DatabaseSync } = await import('node:sqlite')
  const db = new DatabaseSync(':memory:')
  const filled = db.prepare(`select ${FILLED_PAYLOAD} as payload from (select 4321 as n)`).get()?.payload
  assert.deepEqual(JSON.parse(String(filled)), makePayload(4321))
  db.close()
})

test('options choose, and refuse what there is not', () => {
  const plain = readOptions(['--only', 'drain,enqueue'])
  assert.deepEqual(
    plain.scenarios.map((each) => each.name),
    ['enqueue', 'drain'],
  )
  assert.equal(plain.standard, true)
  assert.deepEqual(plain.sizes, STANDARD)
  const small = readOptions(['--contenders', 'plainjob', '--jobs', '5000', '--rounds', '1', '--enforce'])
  assert.deepEqual([small.standard, small.sizes.jobs, small.rounds, small.enforce], [false, 5_000, 1, true])
  for (const args of [
    ['--jobs', '5000'],
    ['--rounds', '1'],
    ['--large', '10'],
    ['--contenders', 'plainjob'],
  ]) {
    assert.equal(readOptions(args).standard, false, args.join(' '))
  }
  for (const args of [
    ['--only', 'drian'],
    ['--contenders', 'nobody'],
    ['--jobs', 'many'],
    ['--rounds', '0'],
    ['--x'],
    ['--family', 'mysql'],
    ['--family', 'postgres', '--contenders', 'plainjob'],
    ['--family', 'postgres', '--only', 'processes'],
    ['--only', 'horizon'],
    ['--run', '0'],
    ['--run', '4'],
  ]) {
    assert.throws(() => readOptions(args), UsageError)
  }
})

test('a family brings its own contenders, scenarios and sizes', () => {
  const { family, contenders, scenarios, sizes, standard } = readOptions(['--family', 'postgres'])
  assert.equal(family.name, 'postgres')
  assert.deepEqual(
    contenders.map((each) => each.name),
    family.contenders,
  )
  assert.ok(!scenarios.some((each) => each.name === 'horizon'), 'it takes long')
  assert.ok(scenarios.some((each) => each.name === 'drain-20k'))
  const named = readOptions(['--family', 'postgres', '--only', 'horizon', '--run', '2'])
  assert.deepEqual([named.scenarios.map((each) => each.name), named.run, named.standard], [['horizon'], 2, true])
  assert.ok(!scenarios.some((each) => each.name === 'processes'))
  assert.deepEqual([sizes, standard], [STANDARD_OF_SERVERS, true])
  assert.equal(readOptions(['--family', 'postgres', '--horizon', '10']).standard, false)
})
