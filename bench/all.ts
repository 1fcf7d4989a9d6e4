/**
 * One whole run of all families, one after another: npm run bench:all [-- --run 1|2|3]
 * Made three times, at different times and on a quiet machine, it is what docs/benchmarks.md publishes.
 */
import { parseArgs } from 'node:util'
import { measure } from './measure.ts'
import { type BenchOptions, readOptions } from './options.ts'
import { exitCodeOf, type ScenarioResult } from './result.ts'
import { nowText } from './runner.ts'

/** The quick ones first: what is wrong shows early. */
const ORDER = ['sqlite', 'redis', 'postgres', 'kafka'] as const

/** The options of `npm run bench` that make sense for all of them are passed on. */
function optionsOfAll(): readonly BenchOptions[] {
  try {
    const { values } = parseArgs({ options: { run: { type: 'string' } } })
    const run = values.run === undefined ? [] : ['--run', values.run]
    return ORDER.map((family) => readOptions(['--family', family, ...run]))
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
    process.exit(2)
  }
}

const options = optionsOfAll()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))

const begun = nowText()
const results: ScenarioResult[] = []
const took: string[] = []
const minutesSince = (sinceMs: number): string => `${((performance.now() - sinceMs) / 60_000).toFixed(1)} minutes`
const startedMs = performance.now()
for (const each of options) {
  const sinceMs = performance.now()
  results.push(...(await measure(each, begun)))
  took.push(`${each.family.title} ${minutesSince(sinceMs)}`)
}
process.stdout.write(`\nThe whole run took ${minutesSince(startedMs)}: ${took.join(', ')}.\n`)
process.exitCode = exitCodeOf(results, false)
