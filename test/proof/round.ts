/** One round: a fresh store, a crew, faults, then calm; everything must finish, and the checker judges. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { check, type Verdict, type Violation } from '../../proof/check/check.ts'
import { type FinalStore, readFinalStore } from '../../proof/check/final-store.ts'
import { idsOf } from '../../proof/check/gather.ts'
import type { History } from '../../proof/history/entry.ts'
import { type Recorder, readHistory, recordTo } from '../../proof/history/recorder.ts'
import { generateForeign, performForeign } from '../../proof/workload/foreign.ts'
import { openEngine } from '../../src/engine/open.ts'
import { systemClock } from '../../src/time/clock.ts'
import type { FakedClock } from './clocks.ts'
import { RoundCrew } from './crew.ts'
import type { Part } from './part.ts'
import { faultRecorder, strikeAll } from './referee.ts'
import type { Nemesis, OpenStore, Scene, Store } from './scene.ts'
import type { Spares } from './spares.ts'

export interface RoundOptions {
  readonly openStore: OpenStore
  readonly spares: Spares
  readonly machineClock: FakedClock | null
  readonly seed: number
  readonly jobs: number
  readonly faults: number
  /** Those that were asked for; what the store excuses is left out. */
  readonly nemesesOf: (store: Store) => readonly Nemesis[]
  readonly onProgress: (progress: Progress) => void
}

export interface Progress {
  readonly faults: number
  readonly phase: 'faults' | 'calm' | 'judging'
}

export interface RoundReport extends Verdict {
  readonly seed: number
  readonly seconds: number
  /** The history is in its subfolder `history`. `forget` removes it. */
  readonly folder: string
}

const WORKERS = 3
const CLIENTS = 2
const KEEPERS = 1
/** Of the jobs, how many other programs write. Each time a program is started, which takes as long as hundreds of jobs. */
const FOREIGN_SHARE = 1 / 60
const NEVER = new AbortController().signal
/** Clients spread their operations so that jobs come as long as faults strike, and not faster than workers on two cores finish them. */
const MS_PER_FAULT = 1_000
const MS_PER_JOB = 2
/** Within this everything has to finish once all faults are healed: leases and retries of seconds, and the clients' own work, on a machine that is busy. */
const BOUND_MS = 60_000
const BOUND_MS_PER_JOB = 10

export async function playRound(options: RoundOptions): Promise<RoundReport> {
  const { seed, jobs } = options
  const startedMs = performance.now()
  const folder = mkdtempSync(join(tmpdir(), `millrace-proof-${seed}-`))
  const history = join(folder, 'history')
  mkdirSync(history)
  const store = await options.openStore({ seed, folder, env: options.machineClock?.env ?? {} })
  const recorder = recordTo(history, 'referee')
  const { engine, url } = store
  const spanMs = Math.max(jobs * MS_PER_JOB, options.faults * MS_PER_FAULT)
  const program = { seed, jobs, clients: CLIENTS, spanMs }
  const crew = new RoundCrew({
    spares: store.host ?? options.spares,
    recorder,
    part: { engine, url, history, program },
    workers: WORKERS,
    keepers: KEEPERS,
  })
  try {
    const verdict = await playWith(crew, store, { ...options, recorder, folder, history, program })
    return { seed, ...verdict, seconds: (performance.now() - startedMs) / 1_000, folder }
  } finally {
    await crew.kill()
    await store.destroy()
  }
}

interface Playing extends RoundOptions, Pick<Part, 'history' | 'program'> {
  readonly recorder: Recorder
  readonly folder: string
}

async function playWith(crew: RoundCrew, store: Store, playing: Playing): Promise<Verdict> {
  const { recorder, folder, history, seed, faults, onProgress, machineClock } = playing
  machineClock?.set(0)
  await crew.start()
  const clock = machineClock === null ? {} : { machineClock }
  let struck = 0
  const foreign = performForeign(
    generateForeign({ seed, jobs: Math.ceil(playing.jobs * FOREIGN_SHARE), spanMs: playing.program.spanMs }),
    store.producers.map((producer) => ({
      ...producer,
      produce: (type, jobs) => crew.runOutside(() => producer.produce(type, jobs)),
    })),
    { recorder, clock: systemClock, signal: NEVER },
  )
  await strikeAll({
    scene: { store, crew, folder, during: duringOf(store, recorder), ...clock },
    nemeses: playing.nemesesOf(store),
    faults,
    seed,
    onFault: () => {
      struck += 1
      onProgress({ faults: struck, phase: 'faults' })
    },
  })
  await foreign
  await crew.upgrade()
  const boundMs = BOUND_MS + playing.jobs * BOUND_MS_PER_JOB
  recorder.note({ what: 'calm', boundMs })
  onProgress({ faults: struck, phase: 'calm' })
  const left = await untilFinished(crew, boundMs)
  if (left === null) recorder.note({ what: 'finished' })
  await crew.stop()
  onProgress({ faults: struck, phase: 'judging' })
  const entries = readHistory(history)
  const final = await readFinal(store, entries)
  const verdict = check({ history: entries, final, capabilities: store.capabilities })
  const sentences = [...(left === null ? [] : [left]), ...crew.failures]
  const violations = sentences.map((sentence): Violation => ({ rule: 'processes', job: null, sentence }))
  return { ...verdict, violations: [...violations, ...verdict.violations] }
}

/** What strikes a process that plays all parts strikes them all. */
function duringOf(store: Store, recorder: Recorder): Scene['during'] {
  const during = faultRecorder(recorder)
  return store.host === undefined ? during : (fault, strike) => during({ ...fault, target: null }, strike)
}

/** Null when everything has finished within the bound; otherwise what was left, as a sentence. */
async function untilFinished(crew: RoundCrew, boundMs: number): Promise<string | null> {
  const untilMs = performance.now() + boundMs
  if (!(await crew.untilClientsAreDone(boundMs))) return `the clients were not done ${boundMs} ms after the last fault`
  const { isFinished, left } = await crew.finish(Math.ceil(untilMs - performance.now()))
  return isFinished ? null : `not finished ${boundMs} ms after the last fault: ${JSON.stringify(left)}`
}

/** Opened after the faults, because one of them moves the file away. It only reads, so its clock does not matter. */
async function readFinal(store: Store, history: History): Promise<FinalStore> {
  if (store.host !== undefined) return store.host.readFinal(idsOf(history))
  const engine = await openEngine(store.directUrl, { clock: systemClock, migrate: false })
  try {
    return await readFinalStore(engine, idsOf(history))
  } finally {
    await engine.close()
  }
}

export function forget({ folder }: RoundReport): void {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
}
