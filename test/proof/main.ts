/**
 * The proof: `npm run proof -- --engine postgres --nemesis kill,clock --seed 7 --minutes 5`; `--help` says what else.
 * It exits with 1 when a promise was broken or a round could not be played, and with 2 when it was called wrongly.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { allNemeses } from './nemeses/index.ts'
import { type Command, parseCommand, USAGE } from './options.ts'
import { publish } from './publish.ts'
import { openStoreOf, run } from './run.ts'
import type { EngineName } from './scene.ts'

const NAME_WIDTH = 26

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
      await list(command.engine)
      return
    case 'publish':
      publish(command.files)
      return
    default:
      command satisfies never
  }
}

/** Prints what the engine can be struck by. */
async function list(engine: EngineName): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-proof-'))
  const store = await (await openStoreOf(engine))({ seed: 0, folder })
  try {
    for (const { name, does, excuse } of allNemeses(store)) {
      const why = excuse?.(store) ?? null
      console.log(`${name.padEnd(NAME_WIDTH)} ${why === null ? does : `not here: ${why}`}`)
    }
  } finally {
    await store.destroy()
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

function textOf(error: unknown): string {
  if (error instanceof AggregateError) return [error.message, ...error.errors.map(textOf)].join('\n')
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

// What was started ends with this process, which ends by itself only where it is told so.
process.once('SIGINT', () => process.exit(130))
process.once('SIGTERM', () => process.exit(143))

let command: Command | null = null
try {
  command = parseCommand(process.argv.slice(2))
} catch (error) {
  console.error(`${error instanceof Error ? error.message : error}\n\n${USAGE}`)
  process.exitCode = 2
}
try {
  if (command !== null) await main(command)
} catch (error) {
  console.error(textOf(error))
  process.exitCode = 1
}
