import { parseArgs } from 'node:util'
import type { ContenderEntry } from './contender.ts'
import { CONTENDERS } from './contenders/index.ts'
import { FAMILIES, type Family, findFamily } from './families.ts'
import { RUNS_PUBLISHED } from './report/published.ts'
import type { Scenario } from './scenario.ts'
import { SCENARIOS } from './scenarios/index.ts'
import { ROUNDS_STANDARD, type Sizes, STANDARD } from './sizes.ts'

export interface BenchOptions {
  readonly family: Family
  readonly scenarios: readonly Scenario[]
  readonly contenders: readonly ContenderEntry[]
  readonly rounds: number
  readonly sizes: Sizes
  /** True when nothing but the choice of scenarios differs from the published run. */
  readonly standard: boolean
  /** Which of the published runs it is to be; undefined for the next. */
  readonly run: number | undefined
  readonly enforce: boolean
  /** Measure nothing, write the docs anew from the stored results. */
  readonly docsOnly: boolean
  readonly help: boolean
}

/** The default number of jobs, as text for the help. */
function jobsOf({ name, sizes: { jobs, drained } }: Family): string {
  return `${jobs}${drained === jobs ? '' : ` (drain: ${drained})`} for ${name}`
}

export const USAGE = `npm run bench -- [options]

  --family name     ${FAMILIES.map((each) => each.name).join(' or ')} (default: sqlite)
  --only a,b        scenarios: ${SCENARIOS.map((each) => each.name).join(', ')}
                    (default: all of the family but those that take long: ${namesOf(SCENARIOS.filter((each) => each.onDemand !== undefined))})
  --run N           publish as run N of ${RUNS_PUBLISHED}, and drop those from N on: 1 begins anew (default: the next)
  --contenders a,b  of the family (default: all but millrace-memory)
${FAMILIES.map((family) => `                    ${family.name}: ${namesOf(contendersOf(family))}`).join('\n')}
  --rounds N        default: ${ROUNDS_STANDARD}
  --jobs N          default: ${FAMILIES.map(jobsOf).join(', ')}
  --concurrency N   default: ${STANDARD.concurrency}
  --horizon N       jobs finished under a held transaction (default: ${STANDARD.horizon})
  --large N         jobs in each condition of the large store (default: ${STANDARD.large})
  --millions N      all jobs of the largest store (default: ${STANDARD.millions})
  --idle-ms N       how long an idle worker is watched (default: ${STANDARD.idleMs})
  --processes N     default: ${STANDARD.processes}
  --enforce         a missed target is an error
  --docs            only write docs/benchmarks.md, its pictures and the README's rates anew from bench/results

Exits 1 when a job was lost or delivered twice, 2 when an option is wrong. A run of other than standard size, and
a scenario with a fault, writes to bench/results/local and leaves the docs alone.`

export class UsageError extends Error {}

export function readOptions(args: readonly string[]): BenchOptions {
  const { values } = parse(args)
  const family = familyOf(values.family)
  const rounds = wholeNumber('rounds', values.rounds, ROUNDS_STANDARD)
  const sizes: Sizes = {
    ...family.sizes,
    jobs: wholeNumber('jobs', values.jobs, family.sizes.jobs),
    drained: wholeNumber('jobs', values.jobs, family.sizes.drained),
    singles: values.jobs === undefined ? family.sizes.singles : Math.ceil(Number(values.jobs) / 4),
    concurrency: wholeNumber('concurrency', values.concurrency, STANDARD.concurrency),
    horizon: wholeNumber('horizon', values.horizon, STANDARD.horizon),
    large: wholeNumber('large', values.large, STANDARD.large),
    millions: wholeNumber('millions', values.millions, STANDARD.millions),
    idleMs: wholeNumber('idle-ms', values['idle-ms'], STANDARD.idleMs),
    processes: wholeNumber('processes', values.processes, STANDARD.processes),
  }
  const sizeOptions = [
    values.rounds,
    values.jobs,
    values.concurrency,
    values.horizon,
    values.large,
    values.millions,
    values['idle-ms'],
    values.processes,
  ]
  const scenarios = SCENARIOS.filter((each) => each.families?.includes(family.name) ?? true)
  const contenders = contendersOf(family)
  const standard = contenders.filter((each) => family.contenders.includes(each.name))
  return {
    family,
    scenarios: choose(
      'only',
      values.only,
      scenarios,
      scenarios.filter((each) => each.onDemand?.includes(family.name) !== true),
    ),
    contenders: choose('contenders', values.contenders, contenders, standard),
    rounds,
    sizes,
    standard: [...sizeOptions, values.contenders].every((value) => value === undefined),
    run: runOf(values.run),
    enforce: values.enforce ?? false,
    docsOnly: values.docs ?? false,
    help: values.help ?? false,
  }
}

function contendersOf(family: Family): readonly ContenderEntry[] {
  return CONTENDERS.filter((each) => each.family === family.name)
}

function namesOf(items: readonly { readonly name: string }[]): string {
  return items.map((each) => each.name).join(', ')
}

function familyOf(text: string | undefined): Family {
  if (text === undefined) return findFamily('sqlite')
  const family = FAMILIES.find((each) => each.name === text)
  if (family !== undefined) return family
  throw new UsageError(`--family: there is no '${text}'; there are ${namesOf(FAMILIES)}`)
}

function parse(args: readonly string[]) {
  const text = { type: 'string' } as const
  const flag = { type: 'boolean' } as const
  try {
    return parseArgs({
      args: [...args],
      options: {
        family: text,
        only: text,
        contenders: text,
        rounds: text,
        jobs: text,
        concurrency: text,
        horizon: text,
        large: text,
        millions: text,
        run: text,
        'idle-ms': text,
        processes: text,
        enforce: flag,
        docs: flag,
        help: flag,
      },
    })
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}

function wholeNumber(name: string, text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise
  const value = Number(text)
  if (Number.isInteger(value) && value >= 1) return value
  throw new UsageError(`--${name} is '${text}'; give a whole number from 1`)
}

function runOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const run = wholeNumber('run', text, 1)
  if (run <= RUNS_PUBLISHED) return run
  throw new UsageError(`--run is '${text}'; there are ${RUNS_PUBLISHED} published runs`)
}

/** In the order of the list, whatever the order asked for: tables stay comparable. */
function choose<Item extends { readonly name: string }>(
  option: string,
  text: string | undefined,
  all: readonly Item[],
  otherwise: readonly Item[],
): readonly Item[] {
  if (text === undefined) return otherwise
  const names = text.split(',').map((name) => name.trim())
  const unknown = names.find((name) => !all.some((each) => each.name === name))
  if (unknown !== undefined) {
    throw new UsageError(`--${option}: there is no '${unknown}'; there are ${namesOf(all)}`)
  }
  return all.filter((each) => names.includes(each.name))
}
