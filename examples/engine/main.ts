/** Runs the suite on your own engine. In a test file: exercise('array', arrayHarness). */
import { casesOf, LEVELS, runCases } from 'millrace/conformance'
import { arrayHarness } from './harness.ts'

for (const level of LEVELS) {
  const results = await runCases(arrayHarness, casesOf(level))
  const count = (status: string): number => results.filter((result) => result.status === status).length
  console.log(`${level}: ${count('kept')} kept, ${count('excused')} excused, ${count('failed')} failed`)
  for (const result of results) if (result.status === 'failed') console.error(result.name, result.error)
  if (count('failed') > 0) process.exitCode = 1
}
