/** Three runs are published, and no median whose rounds differ by too much. */
import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { findFamily } from '../families.ts'
import { figuresOf, missedOf, type ScenarioResult, unsteadyOf } from '../result.ts'
import { drainResult, plainjob, runsOf, sound } from '../testing/results.ts'
import { renderMarkdown } from './markdown.ts'
import { publish, readPublished } from './published.ts'
import { withRates } from './readme.ts'

test('a median whose rounds differ by more than a third of it is refused, and so is what is judged by it', () => {
  const third = [sound(30_000), sound(36_000), sound(42_000)]
  const more = [sound(29_900), sound(36_000), sound(42_000)]
  const [steady, unsteady] = [third, more].map((rounds) => drainResult({ 'millrace-full': rounds, plainjob }))
  assert.deepEqual(steady === undefined ? [] : unsteadyOf(steady), [])
  assert.equal(steady?.targets[0]?.verdict, 'met')
  assert.ok(unsteady)
  assert.deepEqual(unsteadyOf(unsteady), [
    'drain, millrace-full: drained differs by 34 % of its median from round to round',
  ])
  assert.equal(unsteady.targets[0]?.verdict, 'unsteady')
  assert.deepEqual(missedOf([unsteady]), [])
  const page = renderMarkdown([{ family: findFamily('sqlite'), results: [runsOf(unsteady)] }]).replaceAll('\u202f', '')
  assert.match(page, /^\| The <millrace-full> \| unsteady \(29900–42000\) \| 1\.00\/s \|$/m)
  assert.match(page, /^\| drained with synchronous=FULL ≥ 4 × plainjob \| unsteady \| – \| not judged \|$/m)
})

test('a figure that a contender has not is neither steady nor missed: it is not measured', () => {
  const result = drainResult({ 'millrace-full': [{ values: { bulk: 1 }, faults: [] }], plainjob })
  assert.deepEqual(unsteadyOf(result), [])
  assert.equal(result.targets[0]?.verdict, 'not measured')
  const page = renderMarkdown([{ family: findFamily('sqlite'), results: [runsOf(result, result)] }])
  assert.match(page, /^\| The <millrace-full> \| – \| 1\.00\/s \(1\.00 · 1\.00\) \|$/m)
})

test('rounds of a tail, of a maximum and within what can be told apart need not agree', () => {
  const values = [1, 5, 9].map((value) => ({ values: { value }, faults: [] }))
  const metric = { key: 'value', title: '', unit: 'ms' } as const
  const isSteady = (extra: object): boolean | undefined => figuresOf([{ ...metric, ...extra }], values).value?.isSteady
  assert.deepEqual([{}, { tail: true }, { across: 'max' }, { grain: 8 }, { grain: 7 }].map(isSteady), [
    false,
    true,
    true,
    true,
    false,
  ])
})

test('the page shows each of three runs, their spread, and in how many a target was met', () => {
  const run = (rate: number, repeats = 0): ScenarioResult => ({
    ...drainResult({ 'millrace-full': [sound(rate)], plainjob }),
    repeats,
  })
  const unsteady = drainResult({ 'millrace-full': [sound(10_000), sound(90_000)], plainjob })
  const pageOf = (...runs: readonly ScenarioResult[]): string =>
    renderMarkdown([{ family: findFamily('sqlite'), results: [runsOf(...runs)] }]).replaceAll('\u202f', '')
  const some = pageOf(run(45_000), run(27_000, 2), run(40_500))
  assert.match(some, /≥ 4 × plainjob \| 5\.00 × \| 3\.00 × \| 4\.50 × \| 44 % \| met in 2, missed in 1 of 3 \|$/m)
  assert.match(some, /^\| The <millrace-full> \| 40500\/s \(45000 · 27000 · 40500\) \| /m)
  assert.match(some, /^In run 2 all rounds were made anew 2 times, because some differed by too much\.$/m)
  assert.match(pageOf(run(45_000), run(45_000), run(45_000)), /\| 0 % \| met in every run \|$/m)
  const refused = pageOf(run(45_000), unsteady)
  assert.match(refused, /≥ 4 × plainjob \| 5\.00 × \| unsteady \| – \| met in 1 of 2 \|$/m)
  assert.match(refused, /^\| The <millrace-full> \| 45000\/s \(45000 · unsteady\) \|/m)
})

test('three runs are published, the newest stay, and a run may be made anew', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'millrace-published-'))
  t.after(() => rm(dir, { recursive: true, force: true }))
  const add = (rate: number, number?: number): Promise<void> =>
    publish(dir, drainResult({ 'millrace-full': [sound(rate), sound(rate + 0.123456)], plainjob }), number)
  const rates = async (): Promise<unknown[]> => {
    const [first] = await readPublished(dir, findFamily('sqlite'))
    return first?.runs.map((each) => each.contenders[0]?.rounds[0]?.values.rate) ?? []
  }
  assert.deepEqual(await rates(), [])
  for (const rate of [1_000, 2_000, 3_000, 4_000]) await add(rate)
  assert.deepEqual(await rates(), [2_000, 3_000, 4_000])
  await add(5_000, 2)
  assert.deepEqual(await rates(), [2_000, 5_000])
  await add(6_000, 1)
  assert.deepEqual(await rates(), [6_000])
  const [kept] = await readPublished(dir, findFamily('sqlite'))
  assert.deepEqual(kept?.runs[0]?.contenders[0]?.rounds[1], { values: { rate: 6_000.1, bulk: 1 }, faults: [] })
  assert.equal(kept?.runs[0]?.targets[0]?.verdict, 'missed')
  const text = await readFile(join(dir, 'drain.json'), 'utf8')
  assert.equal(text.trim().split('\n').length, 3, 'a line for each run')
})

test('the README has the middle rate of the runs, and none that was refused', () => {
  const run = (rate: number): ScenarioResult => drainResult({ 'millrace-full': [sound(rate)], plainjob })
  const unsteady = drainResult({ 'millrace-full': [sound(1_000), sound(9_000)], plainjob })
  const marks = ['<!-- Rates: written by npm run bench. -->', '<!-- End of rates. -->']
  const readmeOf = (...runs: readonly ScenarioResult[]): string =>
    withRates(`before\n${marks.join('\nold\n')}\nafter\n`, [
      { family: findFamily('sqlite'), results: [runsOf(...runs)] },
    ])
  const text = readmeOf(run(30_000), run(36_800), run(40_000))
  assert.match(
    text,
    /^before\n.*\n\| SQLite \| 36,800\/s \(`synchronous=full`\) \| plainjob .* 9,000\/s \|\n.*after\n$/s,
  )
  assert.doesNotMatch(text, /old/)
  assert.match(readmeOf(unsteady), /\| SQLite \| unsteady /)
})
