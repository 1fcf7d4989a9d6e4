/** Small plans in which much meets: few jobs, few keys, few workers, and faults among them. */
import { Dice } from '../workload/dice.ts'
import type { Behaviour, Operation, PlannedJob } from '../workload/operation.ts'
import type { Plan, PlannedFault } from './plan.ts'
import { FAULTY_CALLS } from './plan.ts'

/** The last step at which a fault begins; most simulations have that many. */
const LAST_STEP = 500

/**
 * The plan of a seed.
 *
 * @example
 * const plan = generatePlan(7)
 */
export function generatePlan(seed: number): Plan {
  const dice = new Dice(seed)
  const clients = dice.between(1, 2)
  const numbers = { next: 1 }
  return {
    seed,
    workers: dice.between(2, 3),
    clients: Array.from({ length: clients }, () => operationsOf(dice, numbers)),
    faults: Array.from({ length: dice.between(0, 5) }, () => faultOf(dice)),
    choices: null,
  }
}

interface Numbers {
  next: number
}

/** The jobs that a client has enqueued so far. */
type Known = number[]

function operationsOf(dice: Dice, numbers: Numbers): readonly Operation[] {
  const known: Known = []
  const operations: Operation[] = [enqueueOf(dice, numbers, known)]
  const count = dice.between(3, 9)
  while (operations.length < count) operations.push(operationOf(dice, numbers, known))
  return operations
}

function operationOf(dice: Dice, numbers: Numbers, known: Known): Operation {
  const roll = dice.between(1, 100)
  if (roll <= 40) return enqueueOf(dice, numbers, known)
  if (roll <= 55) return { do: 'wait', ms: dice.pick([1, 50, 300, 1_000, 2_500]) }
  if (roll <= 62) return { do: 'cancel', job: jobOf(dice, known) }
  if (roll <= 70) return { do: dice.pick(['pause', 'resume']), type: dice.pick(TYPES) }
  if (roll <= 82) return deskOf(dice)
  if (roll <= 86) return { do: 'edit', behaviours: [behaviourOf(dice)] }
  if (roll <= 92) return scheduleOf(dice)
  if (roll <= 96) return { do: 'result', job: jobOf(dice, known), waitMs: dice.pick([10, 1_000, 4_000]) }
  return { do: 'sweep', what: dice.pick(['completed', 'ended', 'dead']), type: dice.pick(TYPES), ageMs: dice.pick([0, 500]) }
}

/** Those that the workers of a simulation run. */
export const TYPES = ['plain', 'narrow', 'limited', 'urgent', 'bounded', 'fleeting', 'critical', 'versioned'] as const

const jobOf = (dice: Dice, known: Known): number => known[dice.between(0, Math.max(0, known.length - 1))] ?? 0

function deskOf(dice: Dice): Operation {
  const count = dice.between(1, 2)
  return { do: dice.pick(['replay', 'replay', 'discard', 'undo', 'purge']), count, how: dice.pick(['one-by-one', 'at-once']) }
}

function scheduleOf(dice: Dice): Operation {
  const name = dice.pick(['tick', 'tock'])
  if (dice.chance(0.25)) return { do: dice.pick(['unschedule', 'pause-schedule', 'resume-schedule', 'run-schedule']), name }
  return { do: 'schedule', name, everySeconds: dice.between(1, 2), missed: dice.pick(['skip', 'one', 'all']) }
}

function enqueueOf(dice: Dice, numbers: Numbers, known: Known): Operation {
  const how = dice.pick<(Operation & { do: 'enqueue' })['how']>(['one-by-one', 'one-by-one', 'many', 'flow', 'repeat'])
  const jobs = Array.from({ length: dice.between(1, 3) }, () => plannedJob(dice, numbers, known))
  return { do: 'enqueue', jobs, how }
}

function plannedJob(dice: Dice, numbers: Numbers, known: Known): PlannedJob {
  const n = numbers.next
  numbers.next += 1
  const after = known.length > 0 && dice.chance(0.2) ? [jobOf(dice, known)] : null
  known.push(n)
  const type = dice.pick(TYPES)
  return {
    n,
    type,
    behaviours: Array.from({ length: dice.between(1, 3) }, () => behaviourOf(dice)),
    ...(dice.chance(0.4) && { priority: dice.pick([1, 3, 7, 10]) }),
    ...(dice.chance(0.2) && { delayMs: dice.pick([1, 100, 700, 2_000]) }),
    ...(dice.chance(0.4) && { attempts: dice.between(1, 4) }),
    ...(dice.chance(0.2) && { backoff: { kind: 'fixed', delay: dice.pick([0, 10, 300, 1_500]) } }),
    ...(dice.chance(0.15) && { timeoutMs: dice.pick([20, 500]) }),
    ...keyOf(dice, after !== null),
    ...(dice.chance(0.1) && { tenant: { orgId: dice.pick(['a', 'b']) } }),
    ...(dice.chance(0.1) && { removeOnComplete: dice.pick<true | number>([true, 1]) }),
    ...(type !== 'critical' && dice.chance(0.1) && { removeOnFail: dice.pick<true | number>([true, 1]) }),
    ...(after !== null && { after, ifDead: dice.pick(['wait', 'run', 'die']) }),
  }
}

/** A job that comes after others has no latest key. */
function keyOf(dice: Dice, isAfter: boolean): Pick<PlannedJob, 'key' | 'latest'> {
  const roll = dice.between(1, 10)
  if (roll <= 2) return { key: dice.pick(['k1', 'k2']) }
  if (roll > 4 || isAfter) return {}
  return { latest: { key: dice.pick(['l1', 'l2']), ...(dice.chance(0.4) && { seq: dice.between(1, 4) }) } }
}

function behaviourOf(dice: Dice): Behaviour {
  const roll = dice.between(1, 20)
  if (roll <= 8) return { do: 'return', afterMs: dice.pick([0, 0, 5, 100, 900]) }
  if (roll <= 12) {
    return { do: 'throw', afterMs: dice.pick([0, 20]), how: dice.chance(0.25) ? 'non-retryable' : 'error' }
  }
  if (roll <= 13) return { do: 'retry-after', delayMs: dice.pick([0, 100, 1_000]) }
  if (roll <= 14) return { do: dice.pick(['offline', 'postpone']), delayMs: dice.pick([10, 500]), times: 1 }
  if (roll <= 16) return { do: 'hang', forMs: dice.pick([800, 2_500, 6_000]), heeds: dice.chance(0.5) }
  if (roll <= 18) return { do: 'report', steps: dice.between(1, 2), everyMs: dice.pick([0, 50, 900]) }
  if (roll <= 19) return { do: 'enqueue', count: dice.between(1, 2), afterMs: dice.pick([0, 100]) }
  return dice.chance(0.5) ? { do: 'return-nonsense' } : { do: 'crash' }
}

function faultOf(dice: Dice): PlannedFault {
  const at = dice.between(20, LAST_STEP)
  const process = dice.between(0, 4)
  const roll = dice.between(1, 10)
  if (roll <= 2) return { do: 'kill', at, process, backMs: dice.pick([1, 500, 2_000]) }
  if (roll <= 4) return { do: 'pause', at, process, forMs: dice.pick([400, 2_000, 5_000]) }
  if (roll <= 5) return { do: 'stop', at, process, backMs: dice.pick([1, 500]) }
  if (roll <= 6) return { do: 'clock', at, byMs: dice.pick([-20_000, -2_000, 2_000, 20_000]) }
  const call = dice.pick(FAULTY_CALLS)
  return { do: 'call', call, nth: dice.between(1, 6), when: call === 'claim' ? 'before' : dice.pick(['before', 'after']) }
}
