import type { ScenarioResult } from '../result.ts'
import { formatCell, formatTarget } from './figures.ts'

/** A result as text for a terminal. */
export function renderTable(result: ScenarioResult): string {
  const header = ['', ...result.metrics.map((metric) => metric.title)]
  const rows = result.contenders.map((contender) => {
    if (contender.excused !== null) return [contender.name, `– ${contender.excused}`]
    return [contender.name, ...result.metrics.map((metric) => formatCell(contender, metric))]
  })
  const measured = [header, ...rows.filter((row) => row.length === header.length)]
  const widths = header.map((_, column) => Math.max(...measured.map((row) => (row[column] ?? '').length)))
  widths[0] = Math.max(...rows.map(([name = '']) => name.length))
  const lines = [header, ...rows].map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
  const targets = result.targets.map((target) => `  ${MARKS[target.verdict]} ${formatTarget(target)}`)
  const repeated = result.repeats === 0 ? [] : [`  all rounds were made anew ${result.repeats} times`]
  return [`\n${result.title}`, ...lines.map((line) => `  ${line}`), ...repeated, ...targets].join('\n')
}

const MARKS = { met: '✓', missed: '✗', 'not measured': '·', unsteady: '~' } as const
