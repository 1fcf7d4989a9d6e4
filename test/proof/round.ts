/** One round: a fresh store, a crew, faults, then calm; everything must finish, and the checker judges. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { check, type Verdict, type Violation } from '../../proof/check/check.ts'
import { readFinalStore } from '../../proof/check/final-store.ts'
import type { History } from '../../proof/history/entry.ts'
import { type Recorder, readHistory, recordTo } from '../../proof/history/recorder.ts'
import type { Counts } from '../../src/engine/engine.ts'
import { openEngine } from '../../src/engine/open.ts'
import { systemClock } from '../../src/time/clock.ts'
import type { FakedClock } from './clocks.ts'
import { RoundCrew } from './crew.ts'
import { faultRecorder, strikeAll, waitUntilFinished } from './referee.ts'
import type { Nemesis, OpenStore, Store } from './scene.ts'
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
  readonly counts: Counts
}

export interface RoundReport {
  readonly seed: number
  readonly violations: readonly Violation[]
  readonly excused: Verdict['excused']
  readonly tally: Verdict['tally']
  readonly seconds: number
  /** The history is in `history`; whoever has read it removes the folder. */
  readonly folder: string
}

const WORKERS = 3
const CLIENTS = 2
const KEEPERS = 0
/** Within this everything has to finish once all faults are healed: leases and retries of seconds, on a machine that is busy. */
const BOUND_MS = 60_000

export async function playRound(options: RoundOptions): Promise<RoundReport> {
  const { seed, jobs } = options
  const startedMs = performance.now()
  const folder = mkdtempSync(join(tmpdir(), `millrace-proof-${seed}-`))
  const history = join(folder, 'history')
  mkdirSync(history)
  const store = await options.openStore({ seed, folder })
  const recorder = recordTo(history, 'referee')
  const { engine, url } = store
  const crew = new RoundCrew({
    spares: options.spares,
    recorder,
    part: { engine, url, history, seed, jobs, clients: CLIENTS },
    workers: WORKERS,
    keepers: KEEPERS,
  })
  try {
    const verdict = await playWith(crew, store, { ...options, recorder, folder, history })
    return { seed, ...verdict, seconds: (performance.now() - startedMs) / 1_000, folder }
  } finally {
    await crew.kill()
    await store.destroy()
  }
}

interface Playing extends RoundOptions {
  readonly recorder: Recorder
  readonly folder: string
  readonly history: string
}

async function playWith(crew: RoundCrew, store: Store, playing: Playing): Promise<Verdict> {
  const { recorder, folder, history, seed, faults, onProgress, machineClock } = playing
  const engine = await openEngine(store.directUrl, { clock: systemClock, migrate: true })
  try {
    const progress = { faults: 0, counts: {} }
    machineClock?.set(0)
    await crew.start()
    const clock = machineClock === null ? {} : { machineClock }
    await strikeAll({
      scene: { store, crew, folder, during: faultRecorder(recorder), ...clock },
      nemeses: playing.nemesesOf(store),
      faults,
      seed,
      onFault: () => onProgress({ ...progress, faults: ++progress.faults }),
    })
    recorder.note({ what: 'calm', boundMs: BOUND_MS })
    const hasFinished = await waitUntilFinished({
      engine,
      areClientsDone: () => crew.areClientsDone,
      boundMs: BOUND_MS,
      onCounts: (counts) => onProgress({ ...progress, counts }),
    })
    if (hasFinished) recorder.note({ what: 'finished' })
    await crew.stop()
    const entries = readHistory(history)
    const final = await readFinalStore(engine, idsOf(entries))
    const verdict = check({ history: entries, final, capabilities: store.capabilities })
    const own = crew.failures.map((sentence): Violation => ({ rule: 'process', job: null, sentence }))
    return { ...verdict, violations: [...own, ...verdict.violations] }
  } finally {
    await engine.close()
  }
}

/** All jobs that a history names. */
function idsOf(history: History): readonly string[] {
  const ids = new Set<string>()
  for (const entry of history) {
    switch (entry.what) {
      case 'enqueue':
      case 'save':
        for (const { id } of entry.jobs) ids.add(id)
        break
      case 'claimed':
        for (const { id } of entry.leases) ids.add(id)
        break
      case 'foreign':
        ids.add(entry.job.id)
        break
      default:
    }
  }
  return [...ids]
}

export function forget({ folder }: RoundReport): void {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
}
