import type { Scenario } from '../scenario.ts'
import { bulk } from './bulk.ts'
import { batch, claim } from './claim.ts'
import { drained } from './drain.ts'
import { enqueue } from './enqueue.ts'
import { horizon } from './horizon.ts'
import { idle } from './idle.ts'
import { memory } from './memory.ts'
import { pickup } from './pickup.ts'
import { processes } from './processes.ts'
import { records } from './records.ts'
import { retention } from './retention.ts'

/** In the order in which they are run and shown. */
export const SCENARIOS: readonly Scenario[] = [
  enqueue,
  bulk,
  drained,
  records,
  pickup,
  processes,
  horizon,
  claim,
  memory,
  // It uses up more of the prepared store than the two before can spare.
  batch,
  retention,
  idle,
]

export function findScenario(name: string): Scenario {
  const scenario = SCENARIOS.find((each) => each.name === name)
  if (scenario !== undefined) return scenario
  throw new Error(`no scenario is called '${name}'; there are ${SCENARIOS.map((each) => each.name).join(', ')}`)
}
