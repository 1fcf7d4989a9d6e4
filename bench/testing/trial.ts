/** Small runs of the harness, for its own tests. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import type { ContenderEntry } from '../contender.ts'
import { CONTENDERS } from '../contenders/index.ts'
import { findFamily } from '../families.ts'
import { buildProgram, type Program } from '../process/program.ts'
import { faultsOf, type ScenarioResult } from '../result.ts'
import { runBench } from '../runner.ts'
import { findScenario } from '../scenarios/index.ts'
import type { Server } from '../servers/start.ts'
import type { Sizes } from '../sizes.ts'

const TINY: Sizes = {
  jobs: 300,
  singles: 75,
  drained: 300,
  drains: 1,
  concurrency: 10,
  pickups: 20,
  claims: 10,
  horizon: 500,
  starts: 2,
  // The scenario \`claim\` puts 1 500 jobs of other indices in the place of these, and \`memory\` may drain hundreds more than it asks for.
  large: 4_000,
  millions: 2_000,
  mixed: 100,
  idleMs: 300,
  processes: 2,
  stallMs: 30_000,
  seed: 7,
}

const codeDir = mkdtempSync(join(tmpdir(), 'millrace-bench-code-'))
/** Compiled once, for the first run. */
let program: Promise<Program> | null = null
after(() => rmSync(codeDir, { recursive: true, force: true }))

export function entryOf(name: string): ContenderEntry {
  const entry = CONTENDERS.find((each) => each.name === name)
  assert.ok(entry, `there is a contender '${name}'`)
  return entry
}

interface Asked {
  readonly scenarios: readonly string[]
  readonly contenders: readonly ContenderEntry[]
  readonly sizes?: Partial<Sizes>
  readonly rounds?: number
  readonly repeatsMax?: number
  readonly server?: Server
  /** How long a process may take to end; default: far longer than it takes on a busy machine. */
  readonly endMsMax?: number
}

export async function run(asked: Asked): Promise<{ results: readonly ScenarioResult[]; order: readonly string[] }> {
  const order: string[] = []
  program ??= buildProgram(codeDir)
  const results = await runBench({
    family: findFamily(asked.contenders[0]?.family ?? 'sqlite'),
    scenarios: asked.scenarios.map(findScenario),
    contenders: asked.contenders,
    rounds: asked.rounds ?? 1,
    sizes: { ...TINY, ...asked.sizes },
    program: await program,
    endMsMax: asked.endMsMax ?? 60_000,
    progress: (line) => order.push(line),
    onResult: () => {},
    ...(asked.repeatsMax === undefined ? {} : { repeatsMax: asked.repeatsMax }),
    ...(asked.server === undefined ? {} : { server: asked.server }),
  })
  return { results, order }
}

/** Fails with what went wrong, and unless every metric of every contender that took part is a number. */
export function assertSound(results: readonly ScenarioResult[]): void {
  assert.deepEqual(faultsOf(results), [])
  for (const { scenario, metrics, contenders } of results) {
    for (const { name, figures, excused } of contenders) {
      if (excused !== null) continue
      for (const { key } of metrics) {
        const value = figures[key]?.value
        assert.ok(value !== undefined && Number.isFinite(value), `${scenario}, ${name}: ${key} is ${value}`)
      }
    }
  }
}
