/** Runs scenarios: a fresh process for each measurement, contenders in turn, round after round. */
import { rmSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ContenderEntry, Place } from './contender.ts'
import type { Family } from './families.ts'
import { machineFacts } from './machine.ts'
import { newPlace, removePlace } from './place.ts'
import type { Companion } from './process/line.ts'
import { buildProgram, type Program } from './process/program.ts'
import { contenderResult, faultsOf, judge, type MachineFacts, type ScenarioResult, unsteadyOf } from './result.ts'
import type { Measurement, Scenario } from './scenario.ts'
import type { Server } from './servers/start.ts'
import type { Sizes } from './sizes.ts'

export interface Run {
  readonly family: Family
  readonly scenarios: readonly Scenario[]
  readonly contenders: readonly ContenderEntry[]
  readonly rounds: number
  readonly sizes: Sizes
  /** How often the rounds of a scenario may be made anew because they differ by too much; default: never. */
  readonly repeatsMax?: number
  /** When the run began, if it is a part of a larger one. */
  readonly begun?: string
  /** Compiled code of an earlier call of `buildProgram`; default: the run compiles its own. */
  readonly program?: Program
  /** A server for a family that needs one; default: the run starts and stops its own. */
  readonly server?: Server
  /** How long a process may take to end after its measurement. */
  readonly endMsMax?: number
  /** Told what is being done, line by line. */
  readonly progress: (line: string) => void
  readonly onResult: (result: ScenarioResult) => Promise<void> | void
}

const MEASURE_MS_MAX = 300_000

export async function runBench(run: Run): Promise<readonly ScenarioResult[]> {
  const root = await mkdtemp(join(tmpdir(), 'millrace-bench-'))
  // Also when the run is broken off: a prepared store takes gigabytes.
  const removeRoot = (): void => rmSync(root, { recursive: true, force: true })
  process.once('exit', removeRoot)
  const own = run.server === undefined ? await run.family.startServer?.() : undefined
  const server = run.server ?? own ?? null
  const machine = machineFacts(run.family.versions(server))
  const begun = run.begun ?? nowText()
  const prepared = new Map<string, Place>()
  const serverUrl = server?.url ?? null
  try {
    const program = run.program ?? (await buildProgram(join(root, 'code')))
    const results: ScenarioResult[] = []
    for (const scenario of run.scenarios) {
      const result = await runSteadily(run, scenario, { begun, machine }, { root, serverUrl, program, prepared })
      await run.onResult(result)
      results.push(result)
    }
    return results
  } finally {
    for (const place of prepared.values()) await removePlace(place)
    await own?.stop()
    removeRoot()
    process.off('exit', removeRoot)
  }
}

interface Ground {
  readonly root: string
  readonly serverUrl: string | null
  readonly program: Program
  /** Data that outlives a measurement, by what it is and whose storage it fits. */
  readonly prepared: Map<string, Place>
}

interface Occasion {
  readonly begun: string
  readonly machine: MachineFacts
}

export function nowText(): string {
  return `${new Date().toISOString().slice(0, 19)}Z`
}

/**
 * All rounds of all contenders again, so that they still meet the same machine. Which of them counts is decided by how
 * well the rounds agree and never by what they say.
 */
async function runSteadily(run: Run, scenario: Scenario, occasion: Occasion, ground: Ground): Promise<ScenarioResult> {
  for (let repeats = 0; ; repeats += 1) {
    const result = { ...(await runScenario(run, scenario, occasion, ground)), repeats }
    const unsteady = unsteadyOf(result)
    if (unsteady.length === 0 || repeats >= (run.repeatsMax ?? 0) || faultsOf([result]).length > 0) return result
    for (const sentence of unsteady) run.progress(`${sentence}: all rounds of the scenario again`)
  }
}

async function runScenario(
  run: Run,
  scenario: Scenario,
  occasion: Occasion,
  ground: Ground,
): Promise<Omit<ScenarioResult, 'repeats'>> {
  const taking = run.contenders.filter((entry) => entry.excused[scenario.name] === undefined)
  const measured = new Map<string, Measurement[]>(taking.map((entry) => [entry.name, []]))
  const rounds = Math.min(run.rounds, scenario.roundsMax ?? run.rounds)
  // A B C A B C: whatever slows the machine for a while slows all of them.
  for (let round = 1; round <= rounds; round += 1) {
    const take = async (entry: ContenderEntry): Promise<void> => {
      const measurement = await measureOnce(run, scenario, entry, ground)
      measured.get(entry.name)?.push(measurement)
      run.progress(`${scenario.name} · ${entry.name} · round ${round} of ${rounds} · ${describe(measurement)}`)
    }
    if (scenario.together === true) await Promise.all(taking.map(take))
    else for (const entry of taking) await take(entry)
  }
  const contenders = run.contenders.map((entry) => contenderResult(entry, scenario, measured.get(entry.name) ?? []))
  const { title, explanation, metrics } = scenario
  const targets = judge(scenario, contenders, run.family.name)
  const facts = { ...occasion, sizes: sizesOf(run, scenario) }
  return { scenario: scenario.name, title, explanation, ...facts, metrics, contenders, targets }
}

function sizesOf(run: Run, scenario: Scenario): Sizes {
  return scenario.sizes?.(run.sizes) ?? run.sizes
}

async function measureOnce(run: Run, scenario: Scenario, entry: ContenderEntry, ground: Ground): Promise<Measurement> {
  const assignment = { scenario: scenario.name, entry, sizes: sizesOf(run, scenario) }
  let temporary: Place | null = null
  try {
    let place = await preparedPlace(run, scenario, entry, ground)
    if (place === null) {
      temporary = await newPlace(ground.root, ground.serverUrl)
      place = temporary
    }
    return await measurementOf(ground.program.start({ ...assignment, part: 'measure', place }), run.endMsMax ?? 15_000)
  } catch (error) {
    return { values: {}, faults: [error instanceof Error ? error.message : String(error)] }
  } finally {
    if (temporary !== null) await removePlace(temporary)
  }
}

async function preparedPlace(
  run: Run,
  scenario: Scenario,
  entry: ContenderEntry,
  ground: Ground,
): Promise<Place | null> {
  if (scenario.prepared === undefined) return null
  const key = `${scenario.prepared} of ${entry.storage}`
  const known = ground.prepared.get(key)
  if (known !== undefined) return known
  const place = await newPlace(ground.root, ground.serverUrl)
  const startedMs = performance.now()
  await ground.program.start({ scenario: scenario.name, entry, sizes: sizesOf(run, scenario), part: 'prepare', place })
    .ended
  run.progress(`prepared ${key} in ${((performance.now() - startedMs) / 1_000).toFixed(1)} s`)
  ground.prepared.set(key, place)
  return place
}

/** A process that hangs, or leaves something running after its measurement, is a fault of the contender. */
async function measurementOf(companion: Companion, endMsMax: number): Promise<Measurement> {
  const late = { values: {}, faults: [`no measurement within ${MEASURE_MS_MAX / 1_000} s`] }
  const measured = await withDeadline(companion.hear('measured'), MEASURE_MS_MAX, late).catch((error: unknown) => {
    // It failed in the middle, and what it left open would keep it, and us, for ever.
    companion.kill()
    throw error
  })
  // What a process says under this word is what the scenario's `measure` returned.
  const measurement = measured as Measurement
  const ended = await withDeadline(
    companion.ended.then(() => true),
    measurement === late ? 0 : endMsMax,
    false,
  )
  companion.kill()
  if (ended || measurement === late) return measurement
  return { ...measurement, faults: [...measurement.faults, `did not end within ${endMsMax} ms of its measurement`] }
}

async function withDeadline<Value>(promise: Promise<Value>, ms: number, otherwise: Value): Promise<Value> {
  const timer = new AbortController()
  try {
    return await Promise.race([promise, sleep(ms, otherwise, { signal: timer.signal })])
  } finally {
    timer.abort()
  }
}

function describe({ values, faults }: Measurement): string {
  if (faults.length > 0) return `FAILED: ${faults.join('; ')}`
  return Object.entries(values)
    .map(([key, value]) => `${key} ${value >= 100 ? Math.round(value) : value.toFixed(2)}`)
    .join(', ')
}
