/** `npm run bench`: measures, prints, writes, judges. */
import { machineFacts } from './machine.ts'
import { type BenchOptions, readOptions, USAGE, UsageError } from './options.ts'
import { formatTarget } from './report/figures.ts'
import { DOCS_DIR, LOCAL_DIR, RESULTS_DIR, resultsDirOf, writeDocs, writeResult } from './report/files.ts'
import { renderTable } from './report/table.ts'
import { exitCodeOf, faultsOf, missedOf, type ScenarioResult } from './result.ts'
import { runBench } from './runner.ts'

async function measure(options: BenchOptions): Promise<readonly ScenarioResult[]> {
  const { loadBefore, cores } = machineFacts({})
  if (loadBefore > cores / 2) {
    process.stderr.write(`The machine is busy (load ${loadBefore}): compare contenders, do not trust single figures.\n`)
  }
  const results = await runBench({
    ...options,
    progress: (line) => process.stderr.write(`${Math.round(performance.now() / 1_000)} s · ${line}\n`),
    onResult: (result) => process.stdout.write(`${renderTable(result)}\n`),
  })
  // A run that lost a job is not published, whatever its size.
  const published = options.standard && faultsOf(results).length === 0
  const dir = resultsDirOf(published ? RESULTS_DIR : LOCAL_DIR, options.family)
  for (const result of results) await writeResult(dir, result)
  if (published) await writeDocs(RESULTS_DIR, DOCS_DIR)
  process.stdout.write(`\nWritten to ${published ? 'bench/results and docs' : 'bench/results/local'}.\n`)
  return results
}

function report(results: readonly ScenarioResult[]): void {
  for (const fault of faultsOf(results)) process.stderr.write(`FAILED ${fault}\n`)
  for (const target of missedOf(results)) process.stderr.write(`MISSED ${formatTarget(target)}\n`)
}

async function main(): Promise<number> {
  try {
    const options = readOptions(process.argv.slice(2))
    if (options.help) {
      process.stdout.write(`${USAGE}\n`)
      return 0
    }
    if (options.docsOnly) {
      await writeDocs(RESULTS_DIR, DOCS_DIR)
      return 0
    }
    const results = await measure(options)
    report(results)
    return exitCodeOf(results, options.enforce)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    process.stderr.write(`${error.message}\n\n${USAGE}\n`)
    return 2
  }
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
process.exitCode = await main()
