/** What is kept of a run: written as JSON, and all that the table, the picture and the docs are made from. */
import type { FamilyName } from './contender.ts'
import type { FigureOf, Measurement, Metric, Scenario, Target } from './scenario.ts'
import type { Sizes } from './sizes.ts'
import { median } from './statistics.ts'

export interface Figure {
  /** The median of the rounds, or their maximum where the metric says so. */
  readonly value: number
  readonly min: number
  readonly max: number
}

export interface ContenderResult {
  readonly name: string
  readonly title: string
  readonly notes: string
  /** Why it took no part; then there are no rounds. */
  readonly excused: string | null
  readonly figures: Readonly<Record<string, Figure>>
  readonly rounds: readonly Measurement[]
}

export interface JudgedTarget {
  readonly text: string
  readonly measured: number | null
  readonly bound: string
  readonly limit: number
  readonly unit: string
  readonly verdict: 'met' | 'missed' | 'not measured'
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
  readonly date: string
  readonly machine: MachineFacts
  readonly sizes: Sizes
  readonly metrics: readonly Metric[]
  readonly contenders: readonly ContenderResult[]
  readonly targets: readonly JudgedTarget[]
}

/** Rounds that failed their delivery check stay in the record, but their speed is nobody's. */
export function figuresOf(metrics: readonly Metric[], rounds: readonly Measurement[]): Record<string, Figure> {
  const sound = rounds.filter((round) => round.faults.length === 0)
  const figures: Record<string, Figure> = {}
  if (sound.length === 0) return figures
  for (const { key, across } of metrics) {
    const values = sound.map((round) => round.values[key] ?? Number.NaN)
    const [min, max] = [Math.min(...values), Math.max(...values)]
    figures[key] = { value: across === 'max' ? max : median(values), min, max }
  }
  return figures
}

export function judge(scenario: Scenario, contenders: readonly ContenderResult[], family: FamilyName): JudgedTarget[] {
  const figure: FigureOf = (name, metric) =>
    contenders.find((contender) => contender.name === name)?.figures[metric]?.value
  const targets = scenario.targets.filter((target) => target.family === family)
  return targets.map((target) => {
    const { text, bound, limit, unit } = target
    const measured = target.measured(figure)
    if (measured === undefined) return { text, measured: null, bound, limit, unit, verdict: 'not measured' }
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

/** A lost or repeated job always fails the run; a missed target only when targets are enforced. */
export function exitCodeOf(results: readonly ScenarioResult[], enforce: boolean): 0 | 1 {
  return faultsOf(results).length > 0 || (enforce && missedOf(results).length > 0) ? 1 : 0
}
