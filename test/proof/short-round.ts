/** A round that is short enough for every run of the tests: the same seed each time, and the faults that the engine's older crash tests had. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { Clocks, type FakedClock } from './clocks.ts'
import { sharesClock } from './nemeses/clock.ts'
import { chosenNemeses } from './nemeses/index.ts'
import { forget, playRound } from './round.ts'
import { openStoreOf } from './run.ts'
import type { EngineName } from './scene.ts'
import { Spares } from './spares.ts'

export interface ShortRound {
  readonly engine: EngineName
  readonly seed: number
  /** Kinds of faults to choose from. */
  readonly nemeses: readonly string[]
  readonly jobs: number
  readonly faults: number
  /** Ends the servers that rounds share. */
  stopServers?(): Promise<void>
}

const SPARES = 2
const TIMEOUT_MS = 300_000

export function playShortRound(name: string, { engine, seed, nemeses, jobs, faults, stopServers }: ShortRound): void {
  test(name, { timeout: TIMEOUT_MS }, async (t) => {
    t.diagnostic(`seed ${seed}`)
    const needsClocks = nemeses.includes('clock') || nemeses.includes('drift')
    const clocks = needsClocks ? Clocks.create() : null
    const able = nemeses.filter((nemesis) => clocks !== null || (nemesis !== 'clock' && nemesis !== 'drift'))
    const nextClock = (): FakedClock | undefined => (sharesClock(engine) ? clocks?.machine : clocks?.next())
    const spares = new Spares(SPARES, nextClock)
    try {
      const report = await playRound({
        openStore: await openStoreOf(engine),
        spares,
        machineClock: clocks?.machine ?? null,
        ...{ seed, jobs, faults },
        nemesesOf: (store) => chosenNemeses(store, able),
        onProgress: () => {},
      })
      const { tally, violations, seconds } = report
      t.diagnostic(JSON.stringify({ ...tally, seconds: Math.round(seconds) }))
      const struck = Object.values(tally.faults).reduce((sum, count) => sum + count, 0)
      if (violations.length === 0) forget(report)
      else t.diagnostic(`the history is in ${join(report.folder, 'history')}`)
      assert.deepEqual(
        violations.map(({ rule, sentence }) => `${rule}: ${sentence}`),
        [],
      )
      assert.equal(struck, faults, 'not every fault has struck')
      // Not by the number of jobs: it counts those that a client asked for and never heard of again.
      assert.ok(
        tally.repeats > 0 && tally.completed > 0 && tally.dead > 0,
        `too little happened to show anything: ${JSON.stringify(tally)}`,
      )
    } finally {
      spares.close()
      clocks?.close()
      await stopServers?.()
    }
  })
}
