import type { Command } from 'commander'
import { applyMigrations, planMigrations } from '../../engine/open.ts'
import { UnsupportedError } from '../../errors.ts'
import { type Cli, examples, type SharedOptions } from '../cli.ts'
import { migrateOwnTables, tableNames } from '../own-tables.ts'

interface MigrateOptions extends SharedOptions {
  readonly dryRun?: true
  readonly tables?: readonly string[]
}

export function addMigrate(program: Command, cli: Cli): void {
  program
    .command('migrate')
    .summary('create or upgrade the tables')
    .description('Create or upgrade the tables, and print the version of the schema. Repeating it is harmless.')
    .option('--dry-run', 'print the SQL that would run, and change nothing')
    .option('--tables <names>', 'instead: give tables of your own the lease columns, on Postgres', tableNames)
    .addHelpText(
      'after',
      examples([
        ['millrace migrate', 'before workers that open with migrate: false'],
        ['millrace migrate --dry-run', 'read it first'],
        ['millrace migrate --tables jobs,asr_jobs', 'before the reaper watches your own tables'],
      ]),
    )
    .action((_options, command: Command) => migrate(cli, command.optsWithGlobals<MigrateOptions>()))
}

async function migrate(cli: Cli, options: MigrateOptions): Promise<void> {
  if (options.tables !== undefined) return migrateOwnTables(cli, options, options.tables)
  const { terminal, clock } = cli
  const settings = { clock, migrate: true }
  const plan = await (options.dryRun ? planMigrations : applyMigrations)(options.engine, settings)
  if (plan === null) {
    const [engine = ''] = options.engine.split(':')
    throw new UnsupportedError({ engine, limit: 'has no schema, so there is nothing to migrate' })
  }
  const { version, latest, pending } = plan
  const names = pending.map((migration) => migration.name)
  if (options.json) {
    terminal.print(JSON.stringify({ from: version, to: latest, dryRun: options.dryRun ?? false, pending }))
    return
  }
  if (pending.length === 0) return terminal.print(`The schema has version ${latest}; nothing to do.`)
  if (options.dryRun) {
    for (const { name, sql } of pending) terminal.print(`-- ${name}\n${sql.trim()}\n`)
    terminal.print(`-- would go from version ${version} to ${latest}; nothing was changed`)
    return
  }
  terminal.print(`The schema went from version ${version} to ${latest}: ${names.join(', ')}.`)
}
