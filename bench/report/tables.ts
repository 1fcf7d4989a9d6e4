/** The tables of the page: what was promised, and what every scenario measured, in each of its runs. */
import type { JudgedTarget, ScenarioResult } from '../result.ts'
import { median } from '../statistics.ts'
import { formatRuns, formatWithUnit } from './figures.ts'
import { RUNS_PUBLISHED, type ScenarioRuns } from './published.ts'

const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`

export function renderTargets(results: readonly ScenarioRuns[]): string {
  const count = Math.max(1, ...results.map(({ runs }) => runs.length))
  const titles = ['', ...Array.from({ length: count }, (_, index) => `run ${index + 1}`), 'spread', '']
  const rows = results.flatMap(({ runs }) => targetRows(runs, count))
  const few = results.some(({ runs }) => runs.length < RUNS_PUBLISHED)
  return [
    '### What is promised, and what was measured',
    '',
    row(titles),
    row(titles.map(() => '---')),
    ...rows,
    ...(few
      ? ['', `A target has fewer than ${RUNS_PUBLISHED} figures where its scenario was not run as often yet.`]
      : []),
  ].join('\n')
}

function targetRows(runs: readonly ScenarioResult[], count: number): string[] {
  const texts = runs.at(-1)?.targets.map(({ text }) => text) ?? []
  return texts.map((text) => {
    const judged = runs.flatMap((run) => run.targets.filter((target) => target.text === text))
    const cells = judged.map((target) =>
      target.measured === null || target.verdict === 'unsteady'
        ? target.verdict
        : formatWithUnit(target.measured, target.unit),
    )
    const missing = Array.from({ length: count - cells.length }, () => '–')
    return row([text, ...cells, ...missing, spreadOf(judged), verdictOf(judged)])
  })
}

/** How far the runs lie apart, in per cent of the one in the middle. */
function spreadOf(judged: readonly JudgedTarget[]): string {
  const values = judged.flatMap(({ measured, verdict }) =>
    measured === null || verdict === 'unsteady' ? [] : [measured],
  )
  const middle = median(values)
  if (values.length < 2 || middle === 0) return '–'
  return `${Math.round(((Math.max(...values) - Math.min(...values)) / middle) * 100)} %`
}

function verdictOf(judged: readonly JudgedTarget[]): string {
  const times = (verdict: JudgedTarget['verdict']): number =>
    judged.filter((target) => target.verdict === verdict).length
  const [missed, met] = [times('missed'), times('met')]
  const all = judged.length
  if (met === all) return all === 1 ? 'met' : 'met in every run'
  if (missed === all) return all === 1 ? 'missed' : 'missed in every run'
  const parts = [met > 0 ? `met in ${met}` : '', missed > 0 ? `missed in ${missed}` : ''].filter((part) => part !== '')
  return parts.length === 0 ? 'not judged' : `${parts.join(', ')} of ${all}`
}

export function renderScenario({ runs }: ScenarioRuns): string {
  const latest = runs.at(-1)
  if (latest === undefined) return ''
  const titles = ['', ...latest.metrics.map((metric) => metric.title)]
  const rows = latest.contenders
    .filter((contender) => contender.excused === null)
    .map(({ name, title }) => {
      const results = runs.map((run) => run.contenders.find((each) => each.name === name))
      return [
        title,
        ...latest.metrics.map((metric) =>
          formatRuns(
            results.map((each) => each?.figures[metric.key]),
            metric,
          ),
        ),
      ]
    })
  const table = [titles, titles.map(() => '---'), ...rows].map(row)
  const remarks = [...repeatsOf(runs), ...caveatsOf(latest), ...excusesOf(latest)]
  return [`### ${latest.title}`, '', latest.explanation, '', ...table, ...remarks.flatMap((line) => ['', line])].join(
    '\n',
  )
}

function repeatsOf(runs: readonly ScenarioResult[]): string[] {
  return runs.flatMap(({ repeats }, index) =>
    repeats === 0
      ? []
      : [
          `In run ${index + 1} all rounds were made anew${repeats === 1 ? '' : ` ${repeats} times`}, because some differed by too much.`,
        ],
  )
}

function caveatsOf({ contenders }: ScenarioResult): string[] {
  return contenders.flatMap(({ title, caveat, excused }) =>
    caveat === null || excused !== null ? [] : [`${title} ${caveat}.`],
  )
}

function excusesOf({ contenders }: ScenarioResult): string[] {
  return contenders.flatMap(({ title, excused }) =>
    excused === null ? [] : [`Not measured: ${title}, which ${excused}.`],
  )
}
