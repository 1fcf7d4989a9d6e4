import type { ContenderResult, Figure, JudgedTarget } from '../result.ts'
import type { Metric } from '../scenario.ts'
import { median } from '../statistics.ts'

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

/** The figure and, in brackets, what the rounds spread over. Of rounds that differ by too much there is no median. */
export function formatFigure(figure: Figure | undefined, metric: Metric): string {
  if (figure === undefined || Number.isNaN(figure.value)) return '–'
  if (!figure.isSteady) return `unsteady (${formatNumber(figure.min)}–${formatNumber(figure.max)})`
  const value = formatWithUnit(figure.value, metric.unit)
  if (formatNumber(figure.min) === formatNumber(figure.max)) return value
  return `${value} (${formatNumber(figure.min)}–${formatNumber(figure.max)})`
}

/** The middle of the runs and, in brackets, each of them; of a single run what its rounds spread over. */
export function formatRuns(figures: readonly (Figure | undefined)[], metric: Metric): string {
  if (figures.length === 1) return formatFigure(figures[0], metric)
  const each = figures.map((figure) => {
    if (figure === undefined || Number.isNaN(figure.value)) return '–'
    return figure.isSteady ? formatNumber(figure.value) : 'unsteady'
  })
  if (each.every((text) => text === '–')) return '–'
  const middle = middleOf(figures)
  const value = middle === undefined ? 'unsteady' : formatWithUnit(middle, metric.unit)
  return `${value} (${each.join(' · ')})`
}

/** Of the runs whose rounds agree; undefined where there is none. */
export function middleOf(figures: readonly (Figure | undefined)[]): number | undefined {
  const values = figures.flatMap((figure) => (figure?.isSteady === true ? [figure.value] : []))
  return values.length === 0 ? undefined : median(values)
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
  if (target.verdict === 'unsteady') return `${target.text}: rounds differ by too much`
  return `${target.text}: ${measured}, ${target.verdict}`
}
