/** The table of a workload's figures: what was measured, in which runs, and what was promised. */
import { percentile } from '../statistics.ts'

export interface WorkloadFigure {
  readonly what: string
  /** Of several runs the middle one. */
  readonly value: number
  /** Each run, where there were several. */
  readonly runs?: readonly number[]
  readonly target?: number
  readonly isMet?: boolean
}

export const FIGURE_COLUMNS = ['|  | measured | runs | promised |  |', '| --- | --- | --- | --- | --- |'] as const

export function renderFigure(
  { what, value, runs = [value], target, isMet }: WorkloadFigure,
  sign: string,
  unit: string,
) {
  const promised = target === undefined ? '–' : `${sign}${target}${unit}`
  const verdict = isMet === undefined ? '' : isMet ? 'met' : 'missed'
  return `| ${what} | ${value}${unit} | ${Math.min(...runs)} to ${Math.max(...runs)} | ${promised} | ${verdict} |`
}

export interface WorkloadResult<Figure extends WorkloadFigure> {
  /** When each of the runs began. */
  readonly times: readonly string[]
  readonly figures: readonly Figure[]
}

const RUNS_KEPT = 3

/**
 * A result with the run that was just made beside the last two, because one run, or three in a row, say little about a
 * machine that others use too. Runs of figures that are no longer measured are dropped.
 */
export function withRun<Figure extends WorkloadFigure, Result extends WorkloadResult<Figure>>(
  before: Result | null,
  now: Result,
  isMet: (figure: Figure, value: number) => boolean,
): Result {
  const same = before?.figures.map(({ what }) => what).join() === now.figures.map(({ what }) => what).join()
  const kept = same ? before : null
  const figures = now.figures.map((figure, index) => {
    const runs = [...(kept?.figures[index]?.runs ?? []), figure.value].slice(-RUNS_KEPT)
    const value = percentile(runs, 50)
    return { ...figure, runs, value, ...(figure.target !== undefined && { isMet: isMet(figure, value) }) }
  })
  return { ...now, times: [...(kept?.times ?? []), ...now.times].slice(-RUNS_KEPT), figures }
}

/** The sentence about the runs below a table. */
export function aboutRuns(times: readonly string[]): string {
  return `${times.length} whole runs, begun at ${times.join(', ')}: the middle one and the spread.`
}
