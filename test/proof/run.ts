/** Plays rounds until the asked number of them, or the time, is over. */
import { cpSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { Clocks, type FakedClock } from './clocks.ts'
import { ENGINES } from './engines/index.ts'
import { CLOCK_NEMESES, sharesClock } from './nemeses/clock.ts'
import { chosenNemeses } from './nemeses/index.ts'
import { type ProofOptions, roundSeed } from './options.ts'
import { add, failureText, newTotals, Screen, type Totals, tallyLine } from './report.ts'
import { forget, type Progress, playRound, type RoundReport } from './round.ts'
import type { EngineName, OpenStore } from './scene.ts'
import { Spares } from './spares.ts'

const SPARES = 3

export async function run(options: ProofOptions): Promise<Totals> {
  const openStore = await openStoreOf(options.engine)
  const clocks = needsClocks(options) ? Clocks.create() : null
  const nextClock = (): FakedClock | undefined => (sharesClock(options.engine) ? clocks?.machine : clocks?.next())
  const spares = new Spares(SPARES, nextClock)
  const screen = new Screen()
  screen.print(`${options.engine}, seed ${options.seed}`)
  const totals = newTotals(options)
  try {
    for (let round = 0; isDue(options, totals, round); round += 1) {
      const seed = roundSeed(options.seed, round)
      const report = await playRound({
        openStore,
        spares,
        machineClock: clocks?.machine ?? null,
        seed,
        jobs: options.jobs,
        faults: options.faults,
        nemesesOf: (store) => {
          const nemeses = chosenNemeses(store, options.nemeses)
          totals.nemeses = Object.fromEntries(nemeses.map(({ name, does }) => [name, does]))
          return nemeses
        },
        onProgress: (progress) => screen.show(tallyLine(totals, nowOf(progress))),
      }).catch((error: unknown) => {
        throw new AggregateError([error], `the round with seed ${seed} could not be played to its end`)
      })
      add(totals, report)
      conclude(report, options, screen)
      screen.show(tallyLine(totals, ''))
    }
    screen.print(tallyLine(totals, ''))
    return totals
  } finally {
    spares.close()
    clocks?.close()
  }
}

function needsClocks({ nemeses }: ProofOptions): boolean {
  return nemeses === 'all' || CLOCK_NEMESES.some(({ name }) => nemeses.includes(name))
}

export async function openStoreOf(engine: EngineName): Promise<OpenStore> {
  const load = ENGINES[engine]
  if (load === undefined) throw new Error(`${engine} has no store in test/proof/engines`)
  return load()
}

function isDue({ rounds, minutes }: ProofOptions, { startedAt }: Totals, round: number): boolean {
  if (rounds !== null && round >= rounds) return false
  return minutes === null || Date.now() - Date.parse(startedAt) < minutes * 60_000
}

function nowOf({ faults, phase }: Progress): string {
  return `; this round: ${faults} faults, ${phase}`
}

/** Keeps the history where it was asked for or is needed, and says what broke. */
function conclude(report: RoundReport, options: ProofOptions, screen: Screen): void {
  const own = join(report.folder, 'history')
  const kept = options.keep === null ? own : join(options.keep, String(report.seed))
  if (options.keep !== null) {
    rmSync(kept, { recursive: true, force: true })
    mkdirSync(kept, { recursive: true })
    cpSync(own, kept, { recursive: true })
  }
  if (report.violations.length > 0) screen.print(failureText(report, kept, options))
  if (options.keep !== null || report.violations.length === 0) forget(report)
}
