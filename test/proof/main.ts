/**
 * The proof: `npm run proof -- --engine postgres --nemesis kill,clock --seed 7 --minutes 5`; `--help` says what else.
 * It exits with 1 when a promise was broken.
 */
import { writeFileSync } from 'node:fs'
import { type Command, parseCommand, USAGE } from './options.ts'
import { run } from './run.ts'

async function main(command: Command): Promise<void> {
  switch (command.do) {
    case 'help':
      console.log(USAGE)
      return
    case 'play': {
      const totals = await run(command.options)
      const { json } = command.options
      if (json !== null) writeFileSync(json, `${JSON.stringify(totals, null, 2)}\n`)
      if (totals.violations > 0) process.exitCode = 1
      return
    }
    case 'list':
    case 'publish':
      throw new Error('not there yet')
    default:
      command satisfies never
  }
}

try {
  await main(parseCommand(process.argv.slice(2)))
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
