/** `npm run bench`: one run of one family. */
import { measure } from './measure.ts'
import { readOptions, USAGE, UsageError } from './options.ts'
import { DOCS_DIR, RESULTS_DIR, writeDocs } from './report/files.ts'
import { exitCodeOf } from './result.ts'

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
