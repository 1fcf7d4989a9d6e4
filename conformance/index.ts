/** The conformance suite: hold your own engine to the contract with `exercise`. */
export { type Case, type CaseFile, type Excuse, type Guarantee, LEVELS, type Level } from './case.ts'
export { type ExerciseOptions, exercise } from './exercise.ts'
export type { CreateHarness, Harness, OwnTransaction } from './harness.ts'
export { type EngineRow, KEPT, type Matrix, promisedRow, rowOf } from './matrix.ts'
export { type CaseResult, type RunOptions, runCase, runCases } from './run.ts'
export { Stage } from './stage.ts'
export { casesOf, table } from './table.ts'
