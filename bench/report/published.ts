/** Published results: of every scenario the last three whole runs, a line of JSON each. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { CONTENDERS } from '../contenders/index.ts'
import type { Family } from '../families.ts'
import { contenderResult, judge, type MachineFacts, type ScenarioResult } from '../result.ts'
import type { Measurement, Scenario } from '../scenario.ts'
import { SCENARIOS } from '../scenarios/index.ts'
import type { Sizes } from '../sizes.ts'

export const RUNS_PUBLISHED = 3

/** What a run is kept as: what was measured. What it is called and judged by is looked up when it is read. */
interface StoredRun {
  readonly begun: string
  readonly machine: MachineFacts
  readonly sizes: Sizes
  readonly repeats: number
  /** By contender and metric, one value for each round; null for what a contender has not. */
  readonly rounds: Readonly<Record<string, Readonly<Record<string, readonly (number | null)[]>>>>
}

/** One scenario in all of its runs, the oldest first; there is at least one. */
export interface ScenarioRuns {
  readonly scenario: string
  readonly runs: readonly ScenarioResult[]
}

/**
 * Publishes a result as the given run of three, default: the next. Those from that number on are dropped, and of more
 * than three the oldest.
 */
export async function publish(dir: string, result: ScenarioResult, number = RUNS_PUBLISHED + 1): Promise<void> {
  const before = (await readStored(dir, result.scenario)).slice(0, number - 1)
  const runs = [...before, stored(result)].slice(-RUNS_PUBLISHED)
  await mkdir(dir, { recursive: true })
  await writeFile(join(dir, `${result.scenario}.json`), `[\n${runs.map((run) => JSON.stringify(run)).join(',\n')}\n]\n`)
}

/** The scenarios of a family of which anything is published, in their order. */
export async function readPublished(dir: string, family: Family): Promise<readonly ScenarioRuns[]> {
  const all: ScenarioRuns[] = []
  for (const scenario of SCENARIOS) {
    const runs = (await readStored(dir, scenario.name)).map((run) => resultOf(run, scenario, family))
    if (runs.length > 0) all.push({ scenario: scenario.name, runs })
  }
  return all
}

async function readStored(dir: string, scenario: string): Promise<readonly StoredRun[]> {
  return (await readIfThere<readonly StoredRun[]>(dir, `${scenario}.json`)) ?? []
}

/** Null if it was never measured. */
export async function readIfThere<Result>(dir: string, name: string): Promise<Result | null> {
  try {
    return JSON.parse(await readFile(join(dir, name), 'utf8'))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  }
}

/** Five digits: the page shows three. */
const rounded = (value: number | undefined): number | null =>
  value === undefined || !Number.isFinite(value) ? null : Number(value.toPrecision(5))

function stored({ begun, machine, sizes, repeats, metrics, contenders }: ScenarioResult): StoredRun {
  const taking = contenders.filter(({ rounds }) => rounds.length > 0)
  const rounds = taking.map(({ name, rounds }) => {
    const values = metrics.map(({ key }) => [key, rounds.map((round) => rounded(round.values[key]))])
    return [name, Object.fromEntries(values)]
  })
  return { begun, machine, sizes, repeats, rounds: Object.fromEntries(rounds) }
}

function resultOf(run: StoredRun, scenario: Scenario, family: Family): ScenarioResult {
  const { title, explanation, metrics } = scenario
  const { begun, machine, sizes, repeats } = run
  const contenders = CONTENDERS.filter((entry) => family.contenders.includes(entry.name)).flatMap((entry) => {
    const excused = entry.excused[scenario.name] ?? null
    const rounds = measurementsOf(run.rounds[entry.name] ?? {})
    return excused === null && rounds.length === 0 ? [] : [contenderResult(entry, scenario, rounds)]
  })
  const targets = judge(scenario, contenders, family.name)
  return {
    scenario: scenario.name,
    title,
    explanation,
    begun,
    machine,
    sizes,
    repeats,
    metrics,
    contenders,
    targets,
  }
}

function measurementsOf(values: Readonly<Record<string, readonly (number | null)[]>>): readonly Measurement[] {
  const count = Math.max(0, ...Object.values(values).map((rounds) => rounds.length))
  return Array.from({ length: count }, (_, index) => ({
    values: Object.fromEntries(Object.entries(values).map(([key, rounds]) => [key, rounds[index] ?? Number.NaN])),
    faults: [],
  }))
}
