/** Measures, prints, and publishes what a run of standard size has measured. */
import { machineFacts } from './machine.ts'
import type { BenchOptions } from './options.ts'
import { formatTarget } from './report/figures.ts'
import { DOCS_DIR, LOCAL_DIR, RESULTS_DIR, resultsDirOf, writeDocs } from './report/files.ts'
import { publish } from './report/published.ts'
import { renderTable } from './report/table.ts'
import { faultsOf, missedOf, type ScenarioResult, unsteadyOf } from './result.ts'
import { runBench } from './runner.ts'

/** How often the rounds of a scenario are made anew before its medians are refused. */
const REPEATS_MAX = 2

export async function measure(options: BenchOptions, begun?: string): Promise<readonly ScenarioResult[]> {
  const { loadBefore, cores } = machineFacts({})
  if (loadBefore > cores / 2) {
    process.stderr.write(`The machine is busy (load ${loadBefore}): compare contenders, do not trust single figures.\n`)
  }
  const results = await runBench({
    ...options,
    repeatsMax: options.standard ? REPEATS_MAX : 0,
    ...(begun === undefined ? {} : { begun }),
    progress: (line) => process.stderr.write(`${Math.round(performance.now() / 1_000)} s · ${line}\n`),
    onResult: async (result) => {
      process.stdout.write(`${renderTable(result)}\n`)
      await keep(options, result)
    },
  })
  report(results)
  return results
}

/** At once, so that a run that is broken off is not lost. A scenario that lost a job is not published. */
async function keep({ standard, family, run }: BenchOptions, result: ScenarioResult): Promise<void> {
  const isPublished = standard && faultsOf([result]).length === 0
  const dir = resultsDirOf(isPublished ? RESULTS_DIR : LOCAL_DIR, family)
  await publish(dir, result, isPublished ? run : 1)
  if (isPublished) await writeDocs(RESULTS_DIR, DOCS_DIR)
  process.stdout.write(`  written to ${isPublished ? 'bench/results and docs' : 'bench/results/local'}\n`)
}

function report(results: readonly ScenarioResult[]): void {
  for (const fault of faultsOf(results)) process.stderr.write(`FAILED ${fault}\n`)
  for (const target of missedOf(results)) process.stderr.write(`MISSED ${formatTarget(target)}\n`)
  for (const sentence of results.flatMap(unsteadyOf)) process.stderr.write(`REFUSED ${sentence}\n`)
}
