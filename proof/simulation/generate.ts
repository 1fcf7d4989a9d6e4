/** Small plans in which much meets: few jobs, types, keys and workers, and faults among them. */
import { Dice } from '../workload/dice.ts'
import type { Behaviour, Operation, PlannedJob } from '../workload/operation.ts'
import { FAULTY_CALLS, type Plan, type PlannedFault } from './plan.ts'

/** The last step at which a fault begins; most simulations have that many. */
const LAST_STEP = 450

/** A few plans have a job that fails much more often than others. */
const STUBBORN_SHARE = 0.03
const STUBBORN: Operation = {
  do: 'enqueue',
  jobs: [
    {
      n: 0,
      type: 'plain',
      attempts: 60,
      backoff: { kind: 'fixed', delay: 0 },
      behaviours: [{ do: 'throw', afterMs: 0, how: 'error' }],
    },
  ],
  how: 'one-by-one',
}

/** Those that the workers of a simulation run. */
const TYPES = ['plain', 'narrow', 'limited', 'urgent', 'bounded', 'fleeting', 'critical', 'versioned'] as const

/**
 * The plan of a seed.
 *
 * @example
 * const plan = generatePlan(7)
 */
export function generatePlan(seed: number): Plan {
  const dice = new Dice(seed)
  const [first = 'plain', ...others] = dice.shuffled(TYPES).slice(0, dice.between(1, 3))
  const author = new Author(dice, [first, ...others])
  const workers = dice.between(2, 3)
  const clients = Array.from({ length: dice.between(1, 2) }, () => author.operations())
  const hasSchedule = clients.flat().some((operation) => operation.do === 'schedule')
  const faults = Array.from({ length: dice.between(0, 5) }, () => faultOf(dice, hasSchedule))
  if (dice.chance(STUBBORN_SHARE)) clients.push([STUBBORN])
  return { seed, workers, clients, faults, choices: null }
}

/** Writes the operations of clients. Each refers only to its own jobs. */
class Author {
  readonly #dice: Dice
  readonly #types: readonly [string, ...string[]]
  #known: number[] = []
  #next = 1

  constructor(dice: Dice, types: readonly [string, ...string[]]) {
    this.#dice = dice
    this.#types = types
  }

  operations(): readonly Operation[] {
    this.#known = []
    const operations: Operation[] = [this.#enqueue()]
    const count = this.#dice.between(3, 9)
    while (operations.length < count) operations.push(this.#operation())
    return operations
  }

  #operation(): Operation {
    const dice = this.#dice
    const type = dice.pick(this.#types)
    const roll = dice.between(1, 100)
    if (roll <= 40) return this.#enqueue()
    if (roll <= 53) return { do: 'wait', ms: dice.pick([1, 50, 300, 1_000, 2_500]) }
    if (roll <= 60) return { do: 'cancel', job: this.#job() }
    if (roll <= 69) return { do: dice.pick(['pause', 'pause', 'resume']), type }
    if (roll <= 81) return deskOf(dice)
    if (roll <= 85) return { do: 'edit', behaviours: [behaviourOf(dice)] }
    if (roll <= 92) return scheduleOf(dice)
    if (roll <= 95) return { do: 'result', job: this.#job(), waitMs: dice.pick([10, 1_000, 4_000]) }
    return { do: 'sweep', what: dice.pick(['completed', 'ended', 'dead']), type, ageMs: dice.pick([0, 500]) }
  }

  /** One of the client's own. */
  #job(): number {
    return this.#known[this.#dice.between(0, Math.max(0, this.#known.length - 1))] ?? 0
  }

  #enqueue(): Operation {
    const dice = this.#dice
    const ways = ['one-by-one', 'one-by-one', 'many', 'flow', 'repeat'] as const
    const jobs = Array.from({ length: dice.between(1, 3) }, () => this.#planned())
    return { do: 'enqueue', jobs, how: dice.pick<(typeof ways)[number]>(ways) }
  }

  #planned(): PlannedJob {
    const dice = this.#dice
    const n = this.#next
    this.#next += 1
    const before = this.#known.length > 0 && dice.chance(0.25)
    const after = before ? Array.from({ length: dice.between(1, 3) }, () => this.#job()) : null
    this.#known.push(n)
    const type = dice.pick(this.#types)
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
      ...(after !== null && { after: [...new Set(after)], ifDead: dice.pick(['wait', 'run', 'die']) }),
    }
  }
}

/** A job that comes after others has no latest key. */
function keyOf(dice: Dice, isAfter: boolean): Pick<PlannedJob, 'key' | 'latest'> {
  const roll = dice.between(1, 10)
  if (roll <= 2) return { key: dice.pick(['k1', 'k2']) }
  if (roll > 4 || isAfter) return {}
  return { latest: { key: dice.pick(['l1', 'l2']), ...(dice.chance(0.4) && { seq: dice.between(1, 4) }) } }
}

function deskOf(dice: Dice): Operation {
  const acts = ['replay', 'replay', 'discard', 'undo', 'purge'] as const
  const how = dice.chance(0.5) ? 'one-by-one' : 'at-once'
  return { do: dice.pick<(typeof acts)[number]>(acts), count: dice.between(1, 2), how }
}

function scheduleOf(dice: Dice): Operation {
  const name = dice.pick(['tick', 'tock'])
  if (dice.chance(0.25)) {
    return { do: dice.pick(['unschedule', 'pause-schedule', 'resume-schedule', 'run-schedule']), name }
  }
  return { do: 'schedule', name, everySeconds: dice.between(1, 2), missed: dice.pick(['skip', 'one', 'all']) }
}

function behaviourOf(dice: Dice): Behaviour {
  const roll = dice.between(1, 20)
  if (roll <= 7) return { do: 'return', afterMs: dice.pick([0, 0, 5, 100, 900]) }
  if (roll <= 11) {
    return { do: 'throw', afterMs: dice.pick([0, 20]), how: dice.chance(0.25) ? 'non-retryable' : 'error' }
  }
  if (roll <= 12) return { do: 'retry-after', delayMs: dice.pick([0, 100, 1_000]) }
  if (roll <= 13) return { do: dice.pick(['offline', 'postpone']), delayMs: dice.pick([10, 500]), times: 1 }
  if (roll <= 15) return { do: 'hang', forMs: dice.pick([800, 2_500, 6_000]), heeds: dice.chance(0.5) }
  if (roll <= 18) return { do: 'report', steps: dice.between(1, 3), everyMs: dice.pick([0, 50, 900]) }
  if (roll <= 19) return { do: 'enqueue', count: dice.between(1, 2), afterMs: dice.pick([0, 100]) }
  return dice.chance(0.5) ? { do: 'return-nonsense' } : { do: 'crash' }
}

/** A large step would make hundreds of ticks of a schedule. */
function faultOf(dice: Dice, hasSchedule: boolean): PlannedFault {
  const at = dice.between(20, LAST_STEP)
  const process = dice.between(0, 4)
  const roll = dice.between(1, 10)
  if (roll <= 2) return { do: 'kill', at, process, backMs: dice.pick([1, 500, 2_000]) }
  if (roll <= 4) return { do: 'pause', at, process, forMs: dice.pick([400, 2_000, 5_000]) }
  if (roll <= 5) return { do: 'stop', at, process, backMs: dice.pick([1, 500]) }
  if (roll <= 6) return { do: 'clock', at, byMs: dice.pick([-20_000, -2_000, 2_000, hasSchedule ? 20_000 : 1_200_000]) }
  const call = dice.pick(FAULTY_CALLS)
  return { do: 'call', call, nth: dice.between(1, 6), when: call === 'claim' || dice.chance(0.5) ? 'before' : 'after' }
}
