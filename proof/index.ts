/** Record what clients, workers and keepers do with your engine, and have the history judged against the contract. */
export { check, type Facts, type Verdict, type Violation } from './check/check.ts'
export { type FinalStore, readFinalStore } from './check/final-store.ts'
export { idsOf } from './check/gather.ts'
export type { Allowance, Entry, Fault, Happening, History } from './history/entry.ts'
export { recorded } from './history/recorded-engine.ts'
export { Recorder, readHistory, recordTo, timesOf } from './history/recorder.ts'
export { generatePlan } from './simulation/generate.ts'
export type { Plan, PlannedFault } from './simulation/plan.ts'
export { type ShrinkOptions, shrink } from './simulation/shrink.ts'
export { type Simulated, type SimulateOptions, simulate } from './simulation/simulate.ts'
export { type CreateStore, memoryStore, type SimulatedStore } from './simulation/stores.ts'
export { type Abilities, abilitiesOf } from './workload/abilities.ts'
export { definitionsFor, type Version, workerOptionsFor } from './workload/definitions.ts'
export { type Finished, finish } from './workload/finish.ts'
export {
  type ForeignJob,
  type ForeignOperation,
  generateForeign,
  type Producer,
  performForeign,
} from './workload/foreign.ts'
export { type GenerateOptions, generate } from './workload/generate.ts'
export { type HandlerParts, handlersFor } from './workload/handlers.ts'
export type { Operation, Program } from './workload/operation.ts'
export { type BeginTransaction, type OpenTransaction, TransactionNames } from './workload/own-transactions.ts'
export { perform } from './workload/perform.ts'
