import { OptionError } from '../../src/errors.ts'
import { type OptionNames, refuseUnknown } from '../../src/job/known-options.ts'
import type { Abilities } from './abilities.ts'
import { Dice } from './dice.ts'
import { FEATURES, type Feature, type Making, plainOperation } from './features/index.ts'
import type { Operation, PlannedJob, Program } from './operation.ts'

export interface GenerateOptions {
  readonly seed: number
  readonly abilities: Abilities
  /** About how many jobs all clients enqueue together. Handlers, schedules and replays add to them. */
  readonly jobs: number
  readonly clients: number
  /** Over how long each client spreads its operations, by waits. Default: 4 ms for each of its jobs. */
  readonly spanMs?: number
  /** How much more often than usual features other than short plain jobs are met. Default: 1; a simulation wants more. */
  readonly density?: number
  /** Jobs that end their process, as far as the engine counts such a start. Default: false. */
  readonly mayCrash?: boolean
  /** Jobs that block the event loop. Default: false. */
  readonly mayBlock?: boolean
  /** The clients have transactions of their own. Default: false. */
  readonly hasTransactions?: boolean
}

const NAMES: OptionNames<GenerateOptions> = {
  seed: true,
  abilities: true,
  jobs: true,
  clients: true,
  spanMs: true,
  density: true,
  mayCrash: true,
  mayBlock: true,
  hasTransactions: true,
}

/** How many jobs the shares of features are given for. */
const PER_JOBS = 1_500
/** The part of a program in which features that take their time begin. */
const EARLY_SHARE = 0.25

/**
 * A seeded mix of what the engine can do. The same options give the same program.
 *
 * @example
 * const program = generate({ seed: 7, abilities: abilitiesOf(mill.engine), jobs: 1_500, clients: 2 })
 */
export function generate(options: GenerateOptions): Program {
  refuseUnknown(options, NAMES, 'generate')
  const { seed, jobs, clients } = options
  if (!Number.isInteger(clients) || clients < 1) throw new OptionError(`'clients' is ${clients}; give at least 1`)
  if (!Number.isInteger(jobs) || jobs < 1) throw new OptionError(`'jobs' is ${jobs}; give at least 1`)
  const dice = new Dice(seed)
  const making = makingOf(options, dice)
  const units = [...featureUnits(making, options), ...plainUnits(making, options)]
  const lists = Array.from({ length: clients }, (): Operation[][] => [])
  for (const [index, unit] of inOrder(units, dice).entries()) lists[index % clients]?.push([...unit.operations])
  const spanMs = options.spanMs ?? (jobs / clients) * 4
  return { seed, clients: lists.map((list) => withWaits(list, spanMs, dice)) }
}

interface Counted extends Making {
  count(): number
}

function makingOf(options: GenerateOptions, dice: Dice): Counted {
  let last = 0
  const seqs = new Map<string, number>()
  return {
    abilities: options.abilities,
    dice,
    mayCrash: options.mayCrash ?? false,
    mayBlock: options.mayBlock ?? false,
    hasTransactions: (options.hasTransactions ?? false) && options.abilities.capabilities.transactionalEnqueue,
    count: () => last,
    job: (type, behaviours = [], more = {}): PlannedJob => {
      last += 1
      return {
        n: last,
        type,
        behaviours: behaviours.length === 0 ? [{ do: 'return', afterMs: 0 }] : behaviours,
        ...more,
      }
    },
    nextSeq: (key) => {
      const seq = (seqs.get(key) ?? 0) + 1
      seqs.set(key, seq)
      return seq
    },
  }
}

interface Unit {
  readonly isEarly: boolean
  readonly operations: readonly Operation[]
}

/** Each feature as often as its share says; in a short program some are left out by chance. */
function featureUnits(making: Counted, { jobs, density = 1 }: GenerateOptions): readonly Unit[] {
  const wanted = FEATURES.filter((feature) => feature.can?.(making) ?? true).flatMap((feature) =>
    Array.from({ length: times((feature.per * density * jobs) / PER_JOBS, making.dice) }, (): Feature => feature),
  )
  const units: Unit[] = []
  for (const feature of making.dice.shuffled(wanted)) {
    if (making.count() >= jobs) break
    units.push({ isEarly: feature.isEarly ?? false, operations: feature.make(making) })
  }
  return units
}

function times(share: number, dice: Dice): number {
  return Math.floor(share) + (dice.chance(share % 1) ? 1 : 0)
}

function plainUnits(making: Counted, { jobs }: GenerateOptions): readonly Unit[] {
  const units: Unit[] = []
  while (making.count() < jobs) {
    const count = Math.min(jobs - making.count(), making.dice.between(1, 20))
    units.push({ isEarly: false, operations: [plainOperation(making, count)] })
  }
  return units
}

function inOrder(units: readonly Unit[], dice: Dice): readonly Unit[] {
  const late = dice.shuffled(units.filter(({ isEarly }) => !isEarly))
  const early = units.filter(({ isEarly }) => isEarly)
  const part = Math.ceil(late.length * EARLY_SHARE)
  return [...dice.shuffled([...early, ...late.slice(0, part)]), ...late.slice(part)]
}

/** Waits between the units, so that they fill `spanMs` together with the waits inside them. */
function withWaits(units: readonly Operation[][], spanMs: number, dice: Dice): readonly Operation[] {
  const inside = units.flat().reduce((sum, operation) => sum + (operation.do === 'wait' ? operation.ms : 0), 0)
  const eachMs = Math.max(0, spanMs - inside) / Math.max(1, units.length)
  return units.flatMap((unit): Operation[] => {
    const ms = Math.round(eachMs * 2 * dice.between(0, 100) * 0.01)
    return ms === 0 ? unit : [...unit, { do: 'wait', ms }]
  })
}
