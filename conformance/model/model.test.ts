import { test } from 'node:test'
import fc from 'fast-check'
import { memoryHarness } from '../engines/memory.ts'
import { postgresHarness } from '../engines/postgres.ts'
import { redisHarness } from '../engines/redis.ts'
import { sqliteHarness } from '../engines/sqlite.ts'
import { anyCommand } from './commands.ts'
import { type Order, World } from './world.ts'

/** Repeat a run with MODEL_SEED=<the seed it printed>; look longer with MODEL_RUNS. */
const seed = Number(process.env.MODEL_SEED ?? 20_260_101)
const numRuns = Number(process.env.MODEL_RUNS ?? 120)
const COMMANDS_MAX = 80
/** Shrinking a failure is worth some minutes and no more; a run without one is over long before, also where all is slow. */
const timeLimitMs = 240_000 + numRuns * 200
/** A round trip takes longer than a look into a file. */
const ROUND_TRIPS = 8

interface Subject {
  readonly name: string
  readonly harness: typeof sqliteHarness
  readonly runs: number
  readonly order: Order
}

const SUBJECTS: readonly Subject[] = [
  { name: 'sqlite', harness: sqliteHarness, runs: numRuns, order: 'exact' },
  { name: 'postgres', harness: postgresHarness, runs: Math.ceil(numRuns / ROUND_TRIPS), order: 'exact' },
  // A job that waited for others joins those of its priority at the end, by BullMQ's own script.
  { name: 'redis, in order,', harness: redisHarness, runs: Math.ceil(numRuns / ROUND_TRIPS), order: 'untied' },
  { name: 'redis', harness: redisHarness, runs: Math.ceil(numRuns / ROUND_TRIPS), order: 'any' },
]

for (const { name, harness, runs, order } of SUBJECTS) {
  test(`${name} does what memory does, whatever happens in whatever order`, async (context) => {
    context.diagnostic(`MODEL_SEED=${seed} MODEL_RUNS=${runs}`)
    await fc.assert(
      fc.asyncProperty(fc.commands(anyCommand, { maxCommands: COMMANDS_MAX, size: 'max' }), async (commands) => {
        const world = await World.create(memoryHarness, harness, order)
        try {
          await fc.asyncModelRun(() => ({ model: {}, real: world }), commands)
        } finally {
          await world.destroy()
        }
      }),
      { seed, numRuns: runs, interruptAfterTimeLimit: timeLimitMs, markInterruptAsFailure: true },
    )
  })
}
