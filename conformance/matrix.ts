import type { Engine } from '../src/engine/engine.ts'
import type { Case } from './case.ts'
import type { CaseResult } from './run.ts'

/** One engine's answers by case name: `kept`, or the sentence that excuses it. */
export type EngineRow = Readonly<Record<string, string>>
export type Matrix = Readonly<Record<string, EngineRow>>

export const KEPT = 'kept'

/** From a run: what the engine has shown. A failed case is recorded as such and never equals a golden row. */
export function rowOf(results: readonly CaseResult[]): EngineRow {
  return Object.fromEntries(results.map((result) => [result.name, answerOf(result)]))
}

/** From its declaration: what the engine promises. The tests show that both are the same. */
export function promisedRow(engine: Engine, cases: readonly Case[]): EngineRow {
  return Object.fromEntries(cases.map(({ name, excuse }) => [name, excuse?.(engine) ?? KEPT]))
}

function answerOf(result: CaseResult): string {
  switch (result.status) {
    case 'kept':
      return KEPT
    case 'excused':
      return result.sentence
    case 'failed':
      return `failed: ${String(result.error)}`
    default:
      result satisfies never
      throw new Error('a case is kept, excused or failed')
  }
}
