/** Results that nobody measured, for tests of what is made from them. */
import type { FamilyName } from '../contender.ts'
import type { ScenarioRuns } from '../report/published.ts'
import { figuresOf, judge, type ScenarioResult } from '../result.ts'
import type { Measurement } from '../scenario.ts'
import { findScenario } from '../scenarios/index.ts'
import { STANDARD } from '../sizes.ts'

/** A round without faults. */
export const sound = (rate: number, bulk = 1): Measurement => ({ values: { rate, bulk }, faults: [] })

/** A drain with these rounds, on contenders that need not exist. */
export function drainResult(
  rates: Readonly<Record<string, readonly Measurement[]>>,
  family: FamilyName = 'sqlite',
): ScenarioResult {
  const scenario = findScenario('drain')
  const contenders = Object.entries(rates).map(([name, rounds]) => ({
    name,
    title: `The <${name}>`,
    notes: `Notes on ${name}.`,
    excused: rounds.length === 0 ? 'was away' : null,
    caveat: null,
    figures: figuresOf(scenario.metrics, rounds),
    rounds,
  }))
  return {
    scenario: scenario.name,
    title: scenario.title,
    explanation: scenario.explanation,
    begun: '2026-01-02T03:04:05Z',
    machine: { cores: 2, processor: 'P', memoryGiB: 4, platform: 'linux', versions: { node: '24.0.0' }, loadBefore: 0 },
    sizes: STANDARD,
    repeats: 0,
    metrics: scenario.metrics,
    contenders,
    targets: judge(scenario, contenders, family),
  }
}

/** As if it had been published. */
export const runsOf = (...runs: readonly ScenarioResult[]): ScenarioRuns => ({ scenario: 'drain', runs })

export const plainjob = [sound(8_000), sound(10_000), sound(9_000)]
