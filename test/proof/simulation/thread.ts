/** Plays its share of the seeds, and tells of each. */
import { parentPort, workerData } from 'node:worker_threads'
import { simulate } from '../../../proof/simulation/simulate.ts'
import { memoryStore, sqliteStore } from '../../../proof/simulation/stores.ts'

Error.stackTraceLimit = 0

const { engine, first, last, step }: { engine: string; first: number; last: number; step: number } = workerData
const create = engine === 'sqlite' ? sqliteStore : memoryStore
for (let seed = first; seed <= last; seed += step) {
  const { verdict } = await simulate({ create, plan: seed })
  const { jobs, starts, faults } = verdict.tally
  const struck = Object.values(faults).reduce((sum, count) => sum + count, 0)
  parentPort?.postMessage({ seed, isBroken: verdict.violations.length > 0, jobs, starts, faults: struck })
}
