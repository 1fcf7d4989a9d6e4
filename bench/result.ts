/** What one run measured of one scenario: all that the table, the picture and the page are made from. */
import type { ContenderEntry, FamilyName } from './contender.ts'
import type { FigureOf, Measurement, Metric, Scenario, Target } from './scenario.ts'
import type { Sizes } from './sizes.ts'
import { median } from './statistics.ts'

export interface Figure {
  /** The median of the rounds, or their maximum where the metric says so. */
  readonly value: number
  readonly min: number
  readonly max: number
  /** False where the rounds differ by more than a third of their median, which is then published by nobody. */
  readonly isSteady: boolean
}

export interface ContenderResult {
  readonly name: string
  readonly title: string
  readonly notes: string
  /** Why it took no part; then there are no rounds. */
  readonly excused: string | null
  /** What was left out for it, because it cannot do it. */
  readonly caveat: string | null
  readonly figures: Readonly<Record<string, Figure>>
  readonly rounds: readonly Measurement[]
}

export interface JudgedTarget {
  readonly text: string
  /** Not to be published where it is unsteady. */
  readonly measured: number | null
  readonly bound: Target['bound']
  readonly limit: number
  readonly unit: string
  readonly verdict: 'met' | 'missed' | 'not measured' | 'unsteady'
}

export interface MachineFacts {
  readonly cores: number
  readonly processor: string
  readonly memoryGiB: number
  readonly platform: string
  readonly versions: Readonly<Record<string, string>>
  /** Processes wanting a core, on average over the minute before the run: above 1 the figures are not to be trusted. */
  readonly loadBefore: number
}

export interface ScenarioResult {
  readonly scenario: string
  readonly title: string
  readonly explanation: string
  /** When the run began, to the second. */
  readonly begun: string
  readonly machine: MachineFacts
  readonly sizes: Sizes
  /** How often all rounds were made anew because some differed by too much. */
  readonly repeats: number
  readonly metrics: readonly Metric[]
  readonly contenders: readonly ContenderResult[]
  readonly targets: readonly JudgedTarget[]
}

/** Of their median: rounds that differ by more say what the machine did, not what the contender does. */
const SPREAD_MAX = 1 / 3

/** Rounds that failed their delivery check stay in the record, but their speed is nobody's. */
export function figuresOf(metrics: readonly Metric[], rounds: readonly Measurement[]): Record<string, Figure> {
  const sound = rounds.filter((round) => round.faults.length === 0)
  const figures: Record<string, Figure> = {}
  if (sound.length === 0) return figures
  for (const metric of metrics) {
    const values = sound.map((round) => round.values[metric.key] ?? Number.NaN)
    const [min, max] = [Math.min(...values), Math.max(...values)]
    const middle = median(values)
    figures[metric.key] = {
      value: metric.across === 'max' ? max : middle,
      min,
      max,
      isSteady: isSteady(metric, max - min, middle),
    }
  }
  return figures
}

function isSteady({ across, tail, grain = 0 }: Metric, spread: number, middle: number): boolean {
  if (across === 'max' || tail === true || Number.isNaN(middle)) return true
  return spread <= Math.max(middle * SPREAD_MAX, grain)
}

export function contenderResult(
  { name, title, notes, excused, caveats }: ContenderEntry,
  scenario: Scenario,
  rounds: readonly Measurement[],
): ContenderResult {
  return {
    name,
    title,
    notes,
    excused: excused[scenario.name] ?? null,
    caveat: caveats?.[scenario.name] ?? null,
    figures: figuresOf(scenario.metrics, rounds),
    rounds,
  }
}

export function judge(scenario: Scenario, contenders: readonly ContenderResult[], family: FamilyName): JudgedTarget[] {
  const targets = scenario.targets.filter((target) => target.family === family)
  return targets.map((target) => {
    const { text, bound, limit, unit } = target
    let allSteady = true
    const figure: FigureOf = (name, metric) => {
      const found = contenders.find((contender) => contender.name === name)?.figures[metric]
      allSteady &&= found?.isSteady ?? true
      return found?.value
    }
    const measured = target.measured(figure)
    if (measured === undefined || Number.isNaN(measured)) {
      return { text, measured: null, bound, limit, unit, verdict: 'not measured' }
    }
    if (!allSteady) return { text, measured, bound, limit, unit, verdict: 'unsteady' }
    return { text, measured, bound, limit, unit, verdict: holds(measured, target) ? 'met' : 'missed' }
  })
}

function holds(measured: number, { bound, limit }: Target): boolean {
  switch (bound) {
    case '<':
      return measured < limit
    case '≤':
      return measured <= limit
    case '≥':
      return measured >= limit
    case '=':
      return measured === limit
    default:
      return bound satisfies never
  }
}

/** Every fault of every round, as sentences. */
export function faultsOf(results: readonly ScenarioResult[]): string[] {
  return results.flatMap((result) =>
    result.contenders.flatMap((contender) =>
      contender.rounds.flatMap((round, index) =>
        round.faults.map((fault) => `${result.scenario}, ${contender.name}, round ${index + 1}: ${fault}`),
      ),
    ),
  )
}

export function missedOf(results: readonly ScenarioResult[]): JudgedTarget[] {
  return results.flatMap((result) => result.targets).filter((target) => target.verdict === 'missed')
}

/** The medians that are refused, as sentences. */
export function unsteadyOf({ scenario, contenders, metrics }: ScenarioResult): string[] {
  return contenders.flatMap(({ name, figures }) =>
    metrics.flatMap(({ key, title }) => {
      const figure = figures[key]
      if (figure === undefined || figure.isSteady) return []
      const share = Math.round(((figure.max - figure.min) / figure.value) * 100)
      return [`${scenario}, ${name}: ${title} differs by ${share} % of its median from round to round`]
    }),
  )
}

/** A lost or repeated job always fails the run; a missed target only when targets are enforced. */
export function exitCodeOf(results: readonly ScenarioResult[], enforce: boolean): 0 | 1 {
  return faultsOf(results).length > 0 || (enforce && missedOf(results).length > 0) ? 1 : 0
}
