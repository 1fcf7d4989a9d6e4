/** What a run has done so far, and what is said about it. */
import type { Violation } from '../../proof/check/check.ts'
import type { ProofOptions } from './options.ts'
import type { RoundReport } from './round.ts'

/** The totals of a run, as `--json` writes them. */
export interface Totals {
  readonly engine: string
  readonly seed: number
  /** What each does, by name. */
  nemeses: Readonly<Record<string, string>>
  /** Of a round, as asked for. */
  readonly jobsPerRound: number
  readonly faultsPerRound: number
  readonly startedAt: string
  rounds: number
  jobs: number
  starts: number
  completed: number
  dead: number
  repeats: number
  refusedSettles: number
  unknownCalls: number
  /** By nemesis. */
  faults: Record<string, number>
  violations: number
  /** Of rounds with a violation. */
  failedSeeds: number[]
  /** What the histories left open: by rule and reason, how often. */
  unjudged: Record<string, number>
  /** Rules that do not apply to the engine, and why. */
  excused: readonly { readonly rule: string; readonly why: string }[]
  seconds: number
}

const VIOLATIONS_SHOWN = 20

export function newTotals(options: ProofOptions): Totals {
  return {
    engine: options.engine,
    seed: options.seed,
    nemeses: {},
    jobsPerRound: options.jobs,
    faultsPerRound: options.faults,
    startedAt: new Date().toISOString(),
    rounds: 0,
    jobs: 0,
    starts: 0,
    completed: 0,
    dead: 0,
    repeats: 0,
    refusedSettles: 0,
    unknownCalls: 0,
    faults: {},
    violations: 0,
    failedSeeds: [],
    unjudged: {},
    excused: [],
    seconds: 0,
  }
}

export function add(totals: Totals, report: RoundReport): void {
  const { tally, violations, excused, unjudged, seed, seconds } = report
  totals.rounds += 1
  for (const name of ['jobs', 'starts', 'completed', 'dead', 'repeats', 'refusedSettles', 'unknownCalls'] as const) {
    totals[name] += tally[name]
  }
  for (const [nemesis, count] of Object.entries(tally.faults)) {
    totals.faults[nemesis] = (totals.faults[nemesis] ?? 0) + count
  }
  for (const { rule, why, count } of unjudged) {
    const name = `${rule}: ${why}`
    totals.unjudged[name] = (totals.unjudged[name] ?? 0) + count
  }
  totals.violations += violations.length
  if (violations.length > 0) totals.failedSeeds.push(seed)
  totals.excused = excused
  totals.seconds += seconds
}

/** One line: jobs, starts, faults by kind, violations, seconds. */
export function tallyLine(totals: Totals, now: string): string {
  const { rounds, jobs, starts, violations } = totals
  const seconds = Math.round((Date.now() - Date.parse(totals.startedAt)) / 1_000)
  const faults = Object.entries(totals.faults).map(([nemesis, count]) => `${nemesis} ${count}`)
  const sum = Object.values(totals.faults).reduce((all, count) => all + count, 0)
  const kinds = faults.length === 0 ? '' : ` (${faults.sort().join(', ')})`
  return `${rounds} rounds, ${jobs} jobs, ${starts} starts, ${sum} faults${kinds}, ${violations} violations, ${seconds} s${now}`
}

/** What broke, the first sentences and the count, and how to play the round again. */
export function failureText({ violations, seed }: RoundReport, history: string, options: ProofOptions): string {
  const shown = violations.slice(0, VIOLATIONS_SHOWN).map(({ rule, sentence }: Violation) => `  ${rule}: ${sentence}`)
  const more = violations.length - shown.length
  const nemeses = options.nemeses === 'all' ? 'all' : options.nemeses.join(',')
  return [
    `The round with seed ${seed} broke ${violations.length === 1 ? 'one promise' : `promises ${violations.length} times`}:`,
    ...shown,
    ...(more > 0 ? [`  and ${more} more`] : []),
    `Its history is in ${history}`,
    `To play it again: npm run proof -- --engine ${options.engine} --nemesis ${nemeses} --seed ${seed} --rounds 1 --jobs ${options.jobs} --faults ${options.faults}`,
    '',
  ].join('\n')
}

const LINE_EVERY_MS = 10_000

/** One line that is written over where the terminal can, otherwise a line now and then. */
export class Screen {
  #lastMs = 0

  show(line: string): void {
    if (process.stdout.isTTY) {
      process.stdout.write(`\r\u001b[2K${line.slice(0, Math.max(20, process.stdout.columns - 1))}`)
      return
    }
    if (performance.now() - this.#lastMs < LINE_EVERY_MS) return
    this.#lastMs = performance.now()
    console.log(line)
  }

  /** Text that stays. */
  print(text: string): void {
    if (process.stdout.isTTY) process.stdout.write('\r\u001b[2K')
    console.log(text)
  }
}
