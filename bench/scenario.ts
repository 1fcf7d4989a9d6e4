import type { Contender, FamilyName, Place } from './contender.ts'
import type { Companion, Line } from './process/line.ts'
import type { Sizes } from './sizes.ts'

/** One number of a measurement, and how it is shown. */
export interface Metric {
  readonly key: string
  readonly title: string
  readonly unit: '/s' | 'ms' | 'MB' | '%' | '×' | ''
  /** How rounds become one figure. Default: the median. `max` is for what must never happen, not even once. */
  readonly across?: 'max'
  /** One slow moment decides it, as it does a p99 or the longest wait: its rounds need not agree. */
  readonly tail?: true
  /** What the measurement cannot tell apart: rounds that differ by no more agree. */
  readonly grain?: number
}

/** What one fresh process measured in one round. */
export interface Measurement {
  readonly values: Readonly<Record<string, number>>
  /** Deliveries that were missing, repeated or unknown. Anything here fails the whole run. */
  readonly faults: readonly string[]
}

/** The figure of a metric of a contender over all rounds, or undefined when it was not measured. */
export type FigureOf = (contender: string, metric: string) => number | undefined

export interface Target {
  /** The run that it is judged by. */
  readonly family: FamilyName
  /** As the project states it. */
  readonly text: string
  readonly bound: '<' | '≤' | '≥' | '='
  readonly limit: number
  readonly unit: Metric['unit']
  /** Undefined when a contender it needs was left out. */
  measured(figure: FigureOf): number | undefined
}

/** What a scenario works with, in the process that measures. */
export interface Scene {
  readonly contender: Contender
  readonly place: Place
  readonly sizes: Sizes
  /** To the process that started this one. */
  readonly line: Line
  /** Starts another process of this scenario, default: at the same place; it plays the part of that name. */
  start(part: string, place?: Place): Companion
}

export interface Scenario {
  readonly name: string
  readonly title: string
  /** For the docs: what is timed, and what is not. */
  readonly explanation: string
  readonly metrics: readonly Metric[]
  readonly targets: readonly Target[]
  /** The families it applies to. Default: all. */
  readonly families?: readonly FamilyName[]
  /** Families in which it is only run when it is asked for by name, because it takes longer than the rest together. */
  readonly onDemand?: readonly FamilyName[]
  /** Fewer rounds than asked for, where one takes long and says enough. */
  readonly roundsMax?: number
  /** The contenders of a round are measured at the same time, because none of them keeps a core busy. */
  readonly together?: true
  /** Its own size of the work; default: that of the run. */
  sizes?(ofRun: Sizes): Sizes
  /** Names data that is prepared once for all contenders of a storage and kept between rounds. */
  readonly prepared?: string
  prepare?(scene: Scene): Promise<void>
  measure(scene: Scene): Promise<Measurement>
  /** What other processes of the scenario do. */
  readonly parts?: Readonly<Record<string, (scene: Scene) => Promise<void>>>
}

/** The same work once more with twenty thousand jobs, judged by the same targets. */
export function atTwentyThousand(scenario: Scenario, families: readonly FamilyName[]): Scenario {
  return {
    ...scenario,
    name: `${scenario.name}-20k`,
    title: `${scenario.title}, 20 thousand jobs`,
    explanation: 'The same with 20 thousand jobs: starting and compiling weigh more.',
    families,
    targets: scenario.targets.map((target) => ({ ...target, text: `${target.text}, 20 thousand jobs` })),
    sizes: (ofRun) => ({
      ...ofRun,
      jobs: Math.min(ofRun.jobs, 20_000),
      drained: Math.min(ofRun.drained, 20_000),
      singles: Math.min(ofRun.singles, 5_000),
    }),
  }
}

export function ratioOf(upper: number | undefined, lower: number | undefined): number | undefined {
  return upper === undefined || lower === undefined ? undefined : upper / lower
}
