/** `npm run bench`: measures, prints, writes, judges. */
import { machineFacts } from './machine.ts'
import { type BenchOptions, readOptions, USAGE, UsageError } from './options.ts'
import { DOCS_DIR, LOCAL_DIR, RESULTS_DIR, writeDocs, writeResult } from './report/files.ts'
import { renderTable } from './report/table.ts'
import { faultsOf, type ScenarioResult } from './result.ts'
import { runBench } from './runner.ts'

async function measure(options: BenchOptions): Promise<readonly ScenarioResult[]> {
  const { loadBefore, cores } = machineFacts()
  if (loadBefore > cores / 2) {
    process.stderr.write(`The machine is busy (load ${loadBefore}): compare contenders, do not trust single figures.\n`)
  }
  const dir = options.standard ? RESULTS_DIR : LOCAL_DIR
  const results: ScenarioResult[] = []
  await runBench({
    ...options,
    progress: (line) => process.stderr.write(`${line}\n`),
    onResult: (result) => {
      results.push(result)
      process.stdout.write(`${renderTable(result)}\n`)
    },
  })
  for (const result of results) await writeResult(dir, result)
  if (options.standard) await writeDocs(RESULTS_DIR, DOCS_DIR)
  process.stdout.write(`\nWritten to ${options.standard ? 'bench/results and docs' : 'bench/results/local'}.\n`)
  return results
}

function exitCodeOf(results: readonly ScenarioResult[], enforce: boolean): number {
  const faults = faultsOf(results)
  for (const fault of faults) process.stderr.write(`FAILED ${fault}\n`)
  const missed = results.flatMap((result) => result.targets).filter((target) => target.verdict === 'missed')
  if (missed.length > 0) process.stderr.write(`Targets missed: ${missed.map((target) => target.text).join('; ')}\n`)
  return faults.length > 0 || (enforce && missed.length > 0) ? 1 : 0
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
    return exitCodeOf(await measure(options), options.enforce)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    process.stderr.write(`${error.message}\n\n${USAGE}\n`)
    return 2
  }
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
process.exitCode = await main()
