/**
 * Guards what was published: npm run bench:gate [-- --family a,b]
 * Measures a few scenarios of each family, Millrace beside the peers it is compared with, and fails where a ratio is
 * below 0.8 of the published one. A scenario in which one is gets a second chance.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { FamilyName } from '../contender.ts'
import { CONTENDERS } from '../contenders/index.ts'
import { FAMILIES, type Family } from '../families.ts'
import { buildProgram, type Program } from '../process/program.ts'
import { RESULTS_DIR, resultsDirOf } from '../report/files.ts'
import { readPublished } from '../report/published.ts'
import { faultsOf } from '../result.ts'
import { runBench } from '../runner.ts'
import type { Scenario } from '../scenario.ts'
import { findScenario } from '../scenarios/index.ts'
import type { Server } from '../servers/start.ts'
import { compare, describeComparison, ratiosOf } from './compare.ts'

const ROUNDS = 3
const ATTEMPTS = 2
/** Those that take seconds and whose ratios are promised. */
const GATED: Readonly<Record<FamilyName, readonly string[]>> = {
  sqlite: ['enqueue-20k', 'drain-20k'],
  postgres: ['enqueue', 'drain-20k'],
  redis: ['enqueue', 'drain-20k'],
  kafka: ['drain-20k', 'records-20k'],
}

const say = (line: string): void => void process.stdout.write(`${line}\n`)

/** What the runs of a family have in common. */
interface Ground {
  readonly program: Program
  readonly server?: Server
}

/** Whether every ratio of the scenario held, in one of the attempts. */
async function holds(family: Family, scenario: Scenario, ground: Ground): Promise<boolean> {
  const published = (await readPublished(resultsDirOf(RESULTS_DIR, family), family)).find(
    (each) => each.scenario === scenario.name,
  )
  if (published === undefined) {
    say(`${family.name} ${scenario.name}: nothing is published to compare with`)
    return true
  }
  const needed = new Set(ratiosOf(scenario, family.name).flatMap(({ contenders }) => contenders))
  const contenders = CONTENDERS.filter(({ name }) => needed.has(name))
  for (let attempt = 1; ; attempt += 1) {
    const progress = (line: string): void => void process.stderr.write(`${line}\n`)
    const run = { ...ground, family, scenarios: [scenario], contenders, rounds: ROUNDS, sizes: family.sizes, progress }
    const results = await runBench({ ...run, onResult: () => {} })
    const faults = faultsOf(results)
    for (const fault of faults) say(`FAILED ${fault}`)
    const compared = results.flatMap((result) => compare(published, result))
    for (const comparison of compared) say(describeComparison(comparison))
    if (faults.length === 0 && compared.every(({ verdict }) => verdict !== 'fell')) return true
    if (faults.length > 0 || attempt === ATTEMPTS) return false
    say(`${scenario.name} is measured once more`)
  }
}

const { values } = parseArgs({ options: { family: { type: 'string' } } })
const names = values.family?.split(',')
const families = FAMILIES.filter(({ name }) => names === undefined || names.includes(name))
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
const codeDir = mkdtempSync(join(tmpdir(), 'millrace-gate-'))
process.once('exit', () => rmSync(codeDir, { recursive: true, force: true }))
const program = await buildProgram(codeDir)
let allHeld = families.length > 0
for (const family of families) {
  const server = await family.startServer?.()
  const ground = { program, ...(server === undefined ? {} : { server }) }
  for (const name of GATED[family.name]) allHeld = (await holds(family, findScenario(name), ground)) && allHeld
  await server?.stop()
}
say(allHeld ? 'Every ratio held.' : 'At least one ratio fell.')
process.exitCode = allHeld ? 0 : 1
