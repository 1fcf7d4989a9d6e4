/** The entry of every measuring process: takes its assignment, plays its part, says what came of it and ends. */
import type { Contender, ContenderModule } from '../contender.ts'
import type { Scenario, Scene } from '../scenario.ts'
import { findScenario } from '../scenarios/index.ts'
import { ASSIGN, type Assignment, FAILED, lineToStarter, startProcess } from './line.ts'

async function play(scenario: Scenario, scene: Scene, part: string): Promise<void> {
  if (part === 'measure') return scene.line.say('measured', await scenario.measure(scene))
  if (part === 'prepare') return scenario.prepare?.(scene)
  const run = scenario.parts?.[part]
  if (run === undefined) throw new Error(`scenario '${scenario.name}' has no part '${part}'`)
  await run(scene)
}

async function load(assignment: Assignment): Promise<Contender> {
  const module: ContenderModule = await import(assignment.entry.module)
  return module.create(assignment.entry)
}

const line = lineToStarter()
try {
  const assignment = (await line.hear(ASSIGN)) as Assignment
  const scenario = findScenario(assignment.scenario)
  const contender = await load(assignment)
  const { place, sizes } = assignment
  await contender.setup(place)
  const start: Scene['start'] = (part, elsewhere = place) => startProcess({ ...assignment, part, place: elsewhere })
  await play(scenario, { contender, place, sizes, line, start }, assignment.part)
  await contender.teardown()
} catch (error) {
  // The stack is printed; the record holds only the error.
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`)
  line.say(FAILED, String(error))
  process.exitCode = 1
} finally {
  // From here the process ends by itself; a contender that leaves timers or threads behind shows itself by not ending.
  await line.end()
}
