/** Record what clients, workers and keepers do with your engine, and have the history judged against the contract. */
export { check, type Facts, type Rule, type Verdict, type Violation } from './check/check.ts'
export { type FinalStore, readFinalStore } from './check/final-store.ts'
export type { Allowance, Entry, Fault, History } from './history/entry.ts'
export { recorded } from './history/recorded-engine.ts'
export { Recorder, readHistory, recordTo, timesOf } from './history/recorder.ts'
