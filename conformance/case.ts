import type { Engine } from '../src/engine/engine.ts'
import type { Stage } from './stage.ts'

/** The guarantees of the contract that a case holds an engine to. */
export type Guarantee = 'I1' | 'I2' | 'I3' | 'I4' | 'I5' | 'I6' | 'I7' | 'I8' | 'I9' | 'I10' | 'I11' | 'I12'

/** Where a case looks: the port alone, the client and worker on top of it, or real processes. */
export type Level = 'port' | 'client' | 'process'
export const LEVELS: readonly Level[] = ['port', 'client', 'process']

/** Why an engine may be excused, and what it must do instead. */
export interface Excuse {
  /** A sentence without subject that ends up in docs/engines.md, or null when the case applies. */
  excuse(engine: Engine): string | null
  /** The twin: what is not offered is refused loudly, and the data is untouched. */
  refusal(stage: Stage): Promise<void>
}

/** One sentence about an engine that is true or false. */
export interface Case extends Partial<Excuse> {
  /** Unique in the table; read as "<engine>: <name>". */
  readonly name: string
  readonly guarantees: readonly Guarantee[]
  run(stage: Stage): Promise<void>
}

/** The cases of one concept: what every file in `cases/` exports. */
export interface CaseFile {
  readonly level: Level
  readonly concept: string
  readonly cases: readonly Case[]
}
