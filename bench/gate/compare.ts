/** What the gate compares: ratios of Millrace to its peers, now and as they are published. */
import type { FamilyName } from '../contender.ts'
import { formatWithUnit } from '../report/figures.ts'
import type { ScenarioRuns } from '../report/published.ts'
import type { JudgedTarget, ScenarioResult } from '../result.ts'
import type { FigureOf, Scenario, Target } from '../scenario.ts'
import { median } from '../statistics.ts'

/** Of the published ratio: what is lost to noise on a machine that does other things too. */
export const SHARE_MIN = 0.8

export interface Ratio {
  readonly target: Target
  /** Whose figures it is made of. */
  readonly contenders: readonly string[]
}

/** The targets of a scenario that compare two contenders. */
export function ratiosOf(scenario: Scenario, family: FamilyName): readonly Ratio[] {
  return scenario.targets.flatMap((target) => {
    if (target.family !== family) return []
    const asked = new Set<string>()
    const figure: FigureOf = (contender) => {
      asked.add(contender)
      return undefined
    }
    target.measured(figure)
    return asked.size < 2 ? [] : [{ target, contenders: [...asked] }]
  })
}

export interface Comparison {
  readonly text: string
  readonly published: number | null
  readonly now: number | null
  /** How much of what is published there is now; a ratio that should be small is turned over. */
  readonly share: number | null
  readonly verdict: 'held' | 'fell' | 'not compared'
}

/** Ratios whose rounds differ by too much are compared too: a gate that only a quiet machine opens would stay shut. */
export function compare(published: ScenarioRuns, now: ScenarioResult): readonly Comparison[] {
  const before = published.runs.flatMap((run) => run.targets)
  return now.targets.flatMap((target) => {
    if (target.unit !== '×') return []
    const steady = before.filter(({ text, verdict }) => text === target.text && verdict !== 'unsteady')
    const values = steady.flatMap(({ measured }) => measured ?? [])
    return [comparisonOf(target, values.length === 0 ? null : median(values))]
  })
}

function comparisonOf({ text, measured: now, bound }: JudgedTarget, published: number | null): Comparison {
  if (now === null || published === null) return { text, published, now, share: null, verdict: 'not compared' }
  const share = bound === '≥' ? now / published : published / now
  return { text, published, now, share, verdict: share < SHARE_MIN ? 'fell' : 'held' }
}

export function describeComparison({ text, published, now, share, verdict }: Comparison): string {
  if (published === null) return `– ${text}: no steady figure is published`
  if (now === null || share === null) return `– ${text}: not measured now`
  const figures = `${formatWithUnit(now, '×')}, published ${formatWithUnit(published, '×')}`
  return `${verdict === 'held' ? '✓' : '✗ FELL'} ${text}: ${figures}, ${Math.round(share * 100)} % of it`
}
