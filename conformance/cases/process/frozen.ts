import assert from 'node:assert/strict'
import type { Consumer } from '../../../src/engine/engine.ts'
import { openEngine } from '../../../src/engine/open.ts'
import { systemClock } from '../../../src/time/clock.ts'
import { limits } from '../../bounds.ts'
import type { CaseFile } from '../../case.ts'
import { need, survival } from '../../needs.ts'
import { type Child, eventually, onProcesses } from '../../process/child.ts'
import { never } from '../../stage.ts'

/** A claim is several round trips at most: so often is the process frozen at whatever it waits for. */
const ROUNDS = 8
const JOBS = 3
/** Much longer than claims take on a busy machine, and shorter than a server waits for a lock. */
const CLAIMS_MS = 15_000

export const frozenProcesses: CaseFile = {
  level: 'process',
  concept: 'Processes that are frozen in the middle of a call',
  cases: [
    {
      name: 'limits under a frozen holder: a worker frozen in the middle of its claim holds up no other worker of the type',
      guarantees: ['I6', 'I10'],
      ...need(survival, limits),
      run: (stage) =>
        onProcesses(stage, async ({ orders, start }) => {
          const engine = await openEngine(orders.url, { clock: systemClock, migrate: true })
          try {
            const limit = { max: 1_000_000, perMs: 1_000 }
            const consumer = await stage.consume({ on: engine, limit })
            const claimer = start('claimer')
            await claimer.heard('ready')
            for (let round = 1; round <= ROUNDS; round += 1) {
              await freeze(claimer, round)
              await engine.enqueue(stage.jobs(JOBS))
              await claimAll(
                consumer,
                async () => (await stage.counts(stage.type, engine)).ready > 0,
                `in round ${round}`,
              )
              claimer.signal('SIGCONT')
            }
          } finally {
            await engine.close()
          }
        }),
    },
  ],
}

async function freeze(claimer: Child, round: number): Promise<void> {
  claimer.go()
  await eventually(() => claimer.all('freezing').length === round, 'the freezing of the process')
}

async function claimAll(consumer: Consumer, isLeft: () => Promise<boolean>, when: string): Promise<void> {
  const startedAtMs = systemClock.monotonicMs()
  const outcome = { kind: 'complete', result: 'null', durationMs: 1 } as const
  while (await isLeft()) {
    const leases = await consumer.claim({ max: JOBS, waitMs: 0, signal: never })
    await consumer.settle(leases.map((lease) => ({ lease, outcome })))
    const tookMs = Math.round(systemClock.monotonicMs() - startedAtMs)
    assert.ok(tookMs < CLAIMS_MS, `${when} claiming beside a frozen worker took ${tookMs} ms`)
  }
}
