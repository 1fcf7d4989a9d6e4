/** What `npm run proof` takes. */
import { parseArgs } from 'node:util'
import { ENGINES } from './engines/index.ts'
import type { EngineName } from './scene.ts'

export interface ProofOptions {
  readonly engine: EngineName
  /** Names of nemeses, or `all`. */
  readonly nemeses: readonly string[] | 'all'
  readonly seed: number
  /** The run ends after the round in which one of both is reached; null: no bound. */
  readonly minutes: number | null
  readonly rounds: number | null
  /** Per round. */
  readonly jobs: number
  readonly faults: number
  /** Where the histories of all rounds go; null: only those of rounds with violations are kept. */
  readonly keep: string | null
  /** Where the totals go as JSON. */
  readonly json: string | null
}

const JOBS_DEFAULT = 2_000
const FAULTS_DEFAULT = 6

export const USAGE = `npm run proof -- --engine <name> [options]

Plays rounds of jobs and faults on real processes and servers, and judges each from its history.

  --engine <name>      ${Object.keys(ENGINES).join(', ')}
  --nemesis <names>    kinds of faults, separated by commas, or 'all' (default: all)
  --seed <number>      of the run (default: a random one, which is printed); the first round has this seed
  --rounds <number>    how many rounds are played (default: 1, or as many as fit into --minutes)
  --minutes <number>   no round begins after so many minutes
  --jobs <number>      jobs that the clients of a round enqueue, about (default: ${JOBS_DEFAULT})
  --faults <number>    faults in a round (default: ${FAULTS_DEFAULT})
  --keep <folder>      keeps the histories of all rounds there; without it only those of rounds with violations are kept
  --json <file>        writes the totals there
  --list               prints the kinds of faults of the engine
  --publish [files]    writes the rules, and the totals that --json wrote to these files, into docs/proof.md; plays nothing
  --help               prints this

A seed gives the same operations, and the same faults at about the same times. Processes and servers run as they like,
so a round that failed need not fail again at once: play it several times.
`

export type Command =
  | { readonly do: 'play'; readonly options: ProofOptions }
  | { readonly do: 'list'; readonly engine: EngineName }
  | { readonly do: 'publish'; readonly files: readonly string[] }
  | { readonly do: 'help' }

/** Throws an Error whose message says what to give instead. */
export function parseCommand(args: readonly string[]): Command {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      engine: { type: 'string' },
      nemesis: { type: 'string', default: 'all' },
      seed: { type: 'string' },
      rounds: { type: 'string' },
      minutes: { type: 'string' },
      jobs: { type: 'string' },
      faults: { type: 'string' },
      keep: { type: 'string' },
      json: { type: 'string' },
      publish: { type: 'boolean', default: false },
      list: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return { do: 'help' }
  if (values.publish) return { do: 'publish', files: positionals }
  if (positionals.length > 0) throw new Error(`'${positionals.join(' ')}' belongs to no option`)
  const engine = engineOf(values.engine)
  if (values.list) return { do: 'list', engine }
  const minutes = numberOf('minutes', values.minutes, { isWhole: false, least: 0.01 })
  return {
    do: 'play',
    options: {
      engine,
      nemeses: values.nemesis === 'all' ? 'all' : values.nemesis.split(','),
      seed: numberOf('seed', values.seed, { isWhole: true, least: 0 }) ?? Math.floor(Math.random() * 2 ** 31),
      minutes,
      rounds: numberOf('rounds', values.rounds, { isWhole: true, least: 1 }) ?? (minutes === null ? 1 : null),
      jobs: numberOf('jobs', values.jobs, { isWhole: true, least: 1 }) ?? JOBS_DEFAULT,
      faults: numberOf('faults', values.faults, { isWhole: true, least: 0 }) ?? FAULTS_DEFAULT,
      keep: values.keep ?? null,
      json: values.json ?? null,
    },
  }
}

function engineOf(name: string | undefined): EngineName {
  const known = Object.keys(ENGINES).find((engine): engine is EngineName => engine === name)
  if (known !== undefined) return known
  throw new Error(`--engine is ${name ?? 'missing'}; give one of ${Object.keys(ENGINES).join(', ')}`)
}

function numberOf(
  name: string,
  text: string | undefined,
  { isWhole, least }: { readonly isWhole: boolean; readonly least: number },
): number | null {
  if (text === undefined) return null
  const number = Number(text)
  if (text.trim() !== '' && number >= least && (!isWhole || Number.isSafeInteger(number))) return number
  throw new Error(`--${name} is '${text}'; give a ${isWhole ? 'whole ' : ''}number from ${least}`)
}

/** The first round has the seed of the run itself, so that one round can be played again alone. */
export function roundSeed(seed: number, round: number): number {
  return (seed + round * 1_000_003) % 2 ** 31
}
