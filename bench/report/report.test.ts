/** What is printed and published follows from the results alone. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { findFamily } from '../families.ts'
import { exitCodeOf, figuresOf, judge, missedOf } from '../result.ts'
import { findScenario } from '../scenarios/index.ts'
import { drainResult, plainjob, runsOf, sound } from '../testing/results.ts'
import { formatNumber } from './figures.ts'
import { DOCS_DIR, RESULTS_DIR, readFamilies, readWorkloads, resultsDirOf } from './files.ts'
import { renderHook } from './hook.ts'
import { pictureOf, renderMarkdown } from './markdown.ts'
import { withRates } from './readme.ts'
import { panelsOf, renderSvg } from './svg.ts'
import { renderTable } from './table.ts'
import { renderVectors } from './vectors.ts'
import { renderWebhooks } from './webhooks.ts'

test('a figure is the median of the sound rounds, with their spread', () => {
  const rounds = [sound(10), sound(40), { values: { rate: 999 }, faults: ['1 of 3 jobs missing, first 1'] }, sound(20)]
  const [rate] = findScenario('drain').metrics
  assert.deepEqual(figuresOf(rate === undefined ? [] : [rate], rounds), {
    rate: { value: 20, min: 10, max: 40, isSteady: false },
  })
})

test('what must never happen is judged by its worst round', () => {
  const scenario = findScenario('processes')
  const values = { one: 1, several: 1, kept: 1, loopDelay: 1, loopLongest: 1 }
  const rounds = [0, 0, 2].map((busy) => ({ values: { ...values, busy }, faults: [] }))
  const figures = figuresOf(scenario.metrics, rounds)
  const contender = { name: 'millrace-full', title: '', notes: '', excused: null, caveat: null, figures, rounds }
  const verdicts = judge(scenario, [contender], 'sqlite').map(({ measured, verdict }) => [measured, verdict])
  assert.deepEqual(verdicts, [
    [1, 'met'],
    [1, 'met'],
    [2, 'missed'],
  ])
})

test('a target is met, missed or not measured, and a miss fails the run only when enforced', () => {
  const met = drainResult({ 'millrace-full': [sound(36_000)], plainjob })
  const missed = drainResult({ 'millrace-full': [sound(35_900)], plainjob })
  const alone = drainResult({ 'millrace-full': [sound(36_000)] })
  const verdicts = [met, missed, alone].map((result) => result.targets[0]?.verdict)
  assert.deepEqual(verdicts, ['met', 'missed', 'not measured'])
  assert.equal(missedOf([met, missed, alone]).length, 1)
  assert.deepEqual([exitCodeOf([met], true), exitCodeOf([missed], false), exitCodeOf([missed], true)], [0, 0, 1])
})

test('numbers have three significant digits', () => {
  const shown = [0, 0.0344, 1.234, 46_789, 1_234_567, 99.96, Number.NaN].map(formatNumber)
  assert.deepEqual(
    shown,
    ['0', '0.034', '1.23', '46 800', '1 230 000', '100', '–'].map((text) => text.replaceAll(' ', '\u202f')),
  )
})

test('the table shows every contender, and marks failures and verdicts', () => {
  const lost = { values: {}, faults: ['1 of 3 jobs missing, first 1'] }
  const result = drainResult({ 'millrace-full': [sound(35_900)], plainjob, other: [lost], absent: [] })
  const lines = renderTable(result)
    .trim()
    .split('\n')
    .map((line) => line.trim().replaceAll('\u202f', ''))
  assert.deepEqual(lines, [
    'Drain',
    'drained                 enqueued in bulk',
    'millrace-full  35900/s                1.00/s',
    'plainjob       9000/s (8000–10000)  1.00/s',
    'other          failed                  failed',
    'absent         – was away',
    '✗ drained with synchronous=FULL ≥ 4 × plainjob: 3.99 ×, missed',
    '✓ bulk enqueue with synchronous=FULL ≥ 1 × plainjob: 1.00 ×, met',
    '· bulk enqueue with synchronous=NORMAL ≥ 1 × plainjob: not measured',
  ])
})

test('the picture has bars in proportion and escapes what it shows', () => {
  const svg = renderSvg(panelsOf([runsOf(drainResult({ 'millrace-full': [sound(36_000)], plainjob, absent: [] }))]))
  const widths = [...svg.matchAll(/<rect class="(ours|other)"[^>]* width="(\d+)"/g)]
  assert.deepEqual(
    widths.map(([, whose]) => whose),
    ['ours', 'other', 'ours', 'other'],
  )
  const [ours = 0, other = 0] = widths.map(([, , width]) => Number(width))
  assert.ok(Math.abs(ours / other - 4) < 0.05, `${ours} to ${other}`)
  assert.match(svg, /The &lt;plainjob&gt;/)
  assert.match(svg, /prefers-color-scheme: dark/)
  const right = [...svg.matchAll(/<text x="(\d+)"/g)].map(([, x]) => Number(x))
  assert.ok(Math.max(...right) < 700, 'the figure at the longest bar still has room')
})

test('the page holds the figures, the verdicts and the machine', () => {
  const results = [runsOf(drainResult({ 'millrace-full': [sound(36_000)], plainjob, absent: [] }))]
  const page = renderMarkdown([{ family: findFamily('sqlite'), results }])
  const text = page.replaceAll('\u202f', '')
  assert.match(text, /^\| The <plainjob> \| 9000\/s \(8000–10000\) \| 1\.00\/s \|$/m)
  assert.match(text, /^\| drained with synchronous=FULL ≥ 4 × plainjob \| 4\.00 × \| – \| met \|$/m)
  assert.match(text, /^Not measured: The <absent>, which was away\.$/m)
  assert.match(text, /2026-01-02 03:04:05: 2 cores, P, 4 GiB, linux; node 24\.0\.0/)
  assert.match(text, /!\[[^\]]+\]\(benchmarks\.svg\)/)
})

test('each family has its own targets, part of the page and picture', () => {
  const [sqlite, postgres] = [findFamily('sqlite'), findFamily('postgres')]
  const rates = { 'millrace-postgres': [sound(30_000)], 'graphile-worker-tuned': [sound(19_000)] }
  const theirs = drainResult({ ...rates, 'bare-postgres': [sound(40_000)] }, 'postgres')
  assert.deepEqual(
    theirs.targets.map(({ measured, verdict }) => [measured?.toFixed(2), verdict]),
    [
      ['1.58', 'met'],
      ['0.75', 'met'],
    ],
  )
  const ours = drainResult({ 'millrace-full': [sound(36_000)], plainjob })
  const page = renderMarkdown([
    { family: sqlite, results: [runsOf(ours)] },
    { family: postgres, results: [runsOf(theirs)] },
  ])
  const [, first = '', second = ''] = page.split(/^## /m)
  assert.match(first, /^SQLite\n.*benchmarks\.svg.*≥ 4 × plainjob/s)
  assert.match(second, /^Postgres\n.*benchmarks-postgres\.svg.*≥ 0\.7 × the bare store \| 0\.750 × \| – \| met/s)
  assert.match(second, /fsync, synchronous_commit/)
  assert.match(second, /`npm run bench -- --family postgres`/)
  assert.doesNotMatch(first, /Postgres/)
  assert.notEqual(pictureOf(sqlite), pictureOf(postgres))
  assert.notEqual(resultsDirOf('results', sqlite), resultsDirOf('results', postgres))
})

test('docs/benchmarks.md, its pictures and the rates of the README are what the stored results say', async () => {
  const families = await readFamilies(RESULTS_DIR)
  const read = (name: string): Promise<string> => readFile(join(DOCS_DIR, name), 'utf8')
  assert.equal(
    await read('benchmarks.md'),
    renderMarkdown(families, await readWorkloads(RESULTS_DIR)),
    'run `npm run bench -- --docs`',
  )
  for (const { family, results } of families) {
    assert.equal(await read(pictureOf(family)), renderSvg(panelsOf(results)), 'run `npm run bench -- --docs`')
  }
  const readme = await read('../README.md')
  assert.equal(readme, withRates(readme, families), 'run `npm run bench -- --docs`')
})

test('the figures of the hook are a section of the page, with what was promised', () => {
  const { machine } = drainResult({})
  const figures = [
    { what: 'the hook, p95', value: 73.2, runs: [73.2, 70, 81.5], unit: 'ms', target: 100, isMet: true },
    { what: 'the hook, p50, against node -e 0', value: 1.5, unit: 'times', target: 1.25, isMet: false },
    { what: 'node -e 0, p50', value: 39, unit: 'ms' },
  ] as const
  const page = renderHook({ date: '2026-01-31', rounds: 200, machine, figures })
  assert.match(page, /^\| the hook, p95 \| 73\.2 ms \| 70 to 81\.5 \| ≤ 100 ms \| met \|$/m)
  assert.match(page, /^\| the hook, p50, against node -e 0 \| 1\.5 × \| 1\.5 to 1\.5 \| ≤ 1\.25 × \| missed \|$/m)
  assert.match(page, /^\| node -e 0, p50 \| 39 ms \| 39 to 39 \| – \| {2}\|$/m)
})

test('the figures of vectors are a section of the page, with what was promised', () => {
  const { machine } = drainResult({})
  const figures = [
    { what: 'SQLite, exact, p95', value: 95.1, runs: [90, 95.1], unit: 'ms', target: 200, isMet: true },
    { what: 'embedder busy, SQLite', value: 0.85, unit: 'share', target: 0.9, isMet: false },
  ] as const
  const page = renderVectors({
    date: '2026-01-31',
    times: ['a', 'b'],
    vectors: 1_000,
    dimensions: 8,
    searches: 5,
    machine,
    figures,
  })
  assert.match(page, /^\| SQLite, exact, p95 \| 95\.1 ms \| 90 to 95\.1 \| ≤ 200 ms \| met \|$/m)
  assert.match(page, /^\| embedder busy, SQLite \| 0\.85 \| 0\.85 to 0\.85 \| ≥ 0\.9 \| missed \|$/m)
})

test('the figures of webhooks are a section of the page, with what was promised', () => {
  const { machine } = drainResult({})
  const figures = [
    { what: 'SQLite, webhooks per second', value: 1_200, runs: [1_100, 1_200], unit: '/s', target: 1_000, isMet: true },
    { what: 'Postgres, webhooks per second', value: 900, runs: [900], unit: '/s', target: 1_000, isMet: false },
    { what: 'SQLite, request to response, p95', value: 14, runs: [14], unit: 'ms' },
  ] as const
  const page = renderWebhooks({ date: '2026-01-31', times: ['a', 'b'], deliveries: 10_000, machine, figures })
  assert.match(page, /^\| SQLite, webhooks per second \| 1200\/s \| 1100 to 1200 \| ≥ 1000\/s \| met \|$/m)
  assert.match(page, /^\| Postgres, webhooks per second \| 900\/s \| 900 to 900 \| ≥ 1000\/s \| missed \|$/m)
  assert.match(page, /^\| SQLite, request to response, p95 \| 14 ms \| 14 to 14 \| – \| {2}\|$/m)
})
