import { test } from 'node:test'
import fc from 'fast-check'
import { memoryHarness } from '../engines/memory.ts'
import { sqliteHarness } from '../engines/sqlite.ts'
import { anyCommand } from './commands.ts'
import { World } from './world.ts'

/** Repeat a run with MODEL_SEED=<the seed it printed>; look longer with MODEL_RUNS. */
const seed = Number(process.env.MODEL_SEED ?? 20_260_101)
const numRuns = Number(process.env.MODEL_RUNS ?? 120)
const COMMANDS_MAX = 80
/** Shrinking a failure is worth a minute and no more. */
const timeLimitMs = 60_000 + numRuns * 200
test('sqlite does what memory does, whatever happens in whatever order', async (context) => {
  context.diagnostic(`MODEL_SEED=${seed} MODEL_RUNS=${numRuns}`)
  await fc.assert(
    fc.asyncProperty(fc.commands(anyCommand, { maxCommands: COMMANDS_MAX, size: 'max' }), async (commands) => {
      const world = await World.create(memoryHarness, sqliteHarness)
      try {
        await fc.asyncModelRun(() => ({ model: {}, real: world }), commands)
      } finally {
        await world.destroy()
      }
    }),
    { seed, numRuns, interruptAfterTimeLimit: timeLimitMs, markInterruptAsFailure: true },
  )
})
