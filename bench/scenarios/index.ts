import { atTwentyThousand, type Scenario } from '../scenario.ts'
import { batch, claim } from './claim.ts'
import { drained } from './drain.ts'
import { enqueue } from './enqueue.ts'
import { horizon } from './horizon.ts'
import { idle } from './idle.ts'
import { memory } from './memory.ts'
import { millions } from './millions.ts'
import { pickup } from './pickup.ts'
import { processes } from './processes.ts'
import { records } from './records.ts'
import { retention } from './retention.ts'
import { start } from './start.ts'
import { work } from './work.ts'

/** In the order in which they are run and shown. */
export const SCENARIOS: readonly Scenario[] = [
  enqueue,
  atTwentyThousand(enqueue, ['sqlite']),
  drained,
  atTwentyThousand(drained, ['sqlite', 'postgres', 'redis', 'kafka']),
  records,
  atTwentyThousand(records, ['kafka']),
  pickup,
  work,
  processes,
  atTwentyThousand(processes, ['sqlite']),
  horizon,
  claim,
  memory,
  // It uses up more of the prepared store than the two before can spare.
  batch,
  retention,
  millions,
  start,
  idle,
]

export function findScenario(name: string): Scenario {
  const scenario = SCENARIOS.find((each) => each.name === name)
  if (scenario !== undefined) return scenario
  throw new Error(`no scenario is called '${name}'; there are ${SCENARIOS.map((each) => each.name).join(', ')}`)
}
