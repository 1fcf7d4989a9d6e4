import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Case, LEVELS, type Level } from './case.ts'
import type { CreateHarness } from './harness.ts'
import { type EngineRow, rowOf } from './matrix.ts'
import { type CaseResult, type RunOptions, runCase } from './run.ts'
import { casesOf } from './table.ts'

export interface ExerciseOptions extends RunOptions {
  /** Default: all three. */
  readonly levels?: readonly Level[]
  /** What the engine is known to keep; a case that changes sides then fails, also for the better. */
  readonly golden?: EngineRow
}

/**
 * Holds an engine to the whole contract, as tests of node:test. Two environment variables narrow a run:
 * `ENGINES=sqlite,memory` (default: every engine) and `LEVELS=port,client` (default: every level).
 *
 * @example
 * exercise('mine', async () => ({ engine, clock, other, advance, destroy }))
 */
export function exercise(name: string, create: CreateHarness, options: ExerciseOptions = {}): void {
  const skip = isChosen('ENGINES', name) ? false : `ENGINES=${process.env.ENGINES} leaves ${name} out`
  const levels = (options.levels ?? LEVELS).filter((level) => isChosen('LEVELS', level))
  const results: CaseResult[] = []
  describe(`conformance of ${name}`, { skip }, () => {
    for (const level of levels) {
      describe(level, () => {
        for (const candidate of casesOf(level)) test(create, candidate, options, results)
      })
    }
    const golden = options.golden
    if (golden !== undefined && levels.length === LEVELS.length)
      it('keeps what conformance/matrix.json says', () => assertGolden(results, golden))
  })
}

function isChosen(variable: 'ENGINES' | 'LEVELS', name: string): boolean {
  const chosen = process.env[variable]
  return chosen === undefined || chosen === '' || chosen.split(',').includes(name)
}

function test(create: CreateHarness, candidate: Case, options: RunOptions, results: CaseResult[]): void {
  it(candidate.name, async (context) => {
    const result = await runCase(create, candidate, options)
    results.push(result)
    if (result.status === 'failed') throw result.error
    if (result.status === 'excused') context.diagnostic(`excused: it ${result.sentence}; the refusal was checked`)
  })
}

function assertGolden(results: readonly CaseResult[], golden: EngineRow): void {
  assert.deepEqual(rowOf(results), golden, 'the engine keeps other cases than recorded; run npm run matrix and look')
}
