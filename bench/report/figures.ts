import type { ContenderResult, Figure, JudgedTarget } from '../result.ts'
import type { Metric } from '../scenario.ts'

/** Three significant digits, thousands apart by a thin space: more would be noise. */
export function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return '–'
  if (value === 0) return '0'
  const significant = Number(value.toPrecision(3))
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(significant))))
  const rounded = significant.toFixed(Math.min(digits, 3))
  const [whole = '', fraction] = rounded.split('.')
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, '\u202f')
  return fraction === undefined ? grouped : `${grouped}.${fraction}`
}

export function formatWithUnit(value: number, unit: Metric['unit'] | string): string {
  if (unit === '') return formatNumber(value)
  return unit === '/s' ? `${formatNumber(value)}/s` : `${formatNumber(value)} ${unit}`
}

/** The figure and, in brackets, what the rounds spread over. */
export function formatFigure(figure: Figure | undefined, metric: Metric): string {
  if (figure === undefined) return '–'
  const value = formatWithUnit(figure.value, metric.unit)
  if (formatNumber(figure.min) === formatNumber(figure.max)) return value
  return `${value} (${formatNumber(figure.min)}–${formatNumber(figure.max)})`
}

export function formatCell(contender: ContenderResult, metric: Metric): string {
  const failed = contender.rounds.some((round) => round.faults.length > 0)
  const figure = contender.figures[metric.key]
  if (figure === undefined) return failed ? 'failed' : '–'
  return failed ? `${formatFigure(figure, metric)}, a round failed` : formatFigure(figure, metric)
}

export function formatTarget(target: JudgedTarget): string {
  const measured = target.measured === null ? 'not measured' : formatWithUnit(target.measured, target.unit)
  if (target.verdict === 'not measured') return `${target.text}: not measured`
  return `${target.text}: ${measured}, ${target.verdict}`
}
