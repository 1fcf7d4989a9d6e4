import type { Command } from 'commander'
import { applyMigrations, planMigrations } from '../../engine/open.ts'
import { OptionError, UnsupportedError } from '../../errors.ts'
import { namesIn, tableNames } from '../arguments.ts'
import { type Cli, examples, type SharedOptions } from '../cli.ts'
import { loadWorkload } from '../extensions.ts'
import type { Terminal } from '../terminal.ts'

interface MigrateOptions extends SharedOptions {
  readonly dryRun?: true
  readonly tables?: readonly string[]
  readonly new?: true
  readonly workload?: readonly string[]
}

export function addMigrate(program: Command, cli: Cli): void {
  program
    .command('migrate')
    .summary('create or upgrade the tables')
    .description('Create or upgrade the tables and print the version of the schema. It is safe to repeat.')
    .option('--dry-run', 'print the SQL and change nothing')
    .option('--tables <names>', 'add the lease columns to your own job tables on Postgres instead', tableNames)
    .option('--new', 'with --tables: create those that do not exist')
    .option(
      '--workload <names>',
      `create the tables of these workloads instead: ${Object.keys(cli.extensions.workloads).join(', ')}`,
      (text) => namesIn(text, 'names of workloads'),
    )
    .addHelpText(
      'after',
      examples([
        ['millrace migrate', 'before workers that open with migrate: false'],
        ['millrace migrate --dry-run', 'read the SQL first'],
        ['millrace migrate --workload webhooks,memories', 'before these workloads run on Postgres'],
        ['millrace migrate --tables jobs,asr_jobs', 'before the reaper watches your own job tables'],
        ['millrace migrate --tables jobs,asr_jobs --dry-run', 'the SQL that your tables need'],
        ['millrace migrate --tables clips --new --dry-run', 'the SQL of a new job table, to add your columns to'],
      ]),
    )
    .action((_options, command: Command) => migrate(cli, command.optsWithGlobals<MigrateOptions>()))
}

async function migrate(cli: Cli, options: MigrateOptions): Promise<void> {
  if (options.tables !== undefined && options.workload !== undefined)
    throw new OptionError('--tables and --workload migrate different tables; give one of them')
  if (options.tables === undefined && options.new)
    throw new OptionError('--new creates job tables of your own; name them with --tables')
  if (options.tables !== undefined) return migrateTables(cli, options, options.tables)
  if (options.workload !== undefined) return migrateWorkloads(cli, options, options.workload)
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
  if (version > latest) {
    terminal.print(
      `The schema has version ${version}; this Millrace knows ${latest} and can work with it. Nothing to do.`,
    )
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

async function migrateTables(cli: Cli, options: MigrateOptions, tables: readonly string[]): Promise<void> {
  const { terminal, extensions } = cli
  const dryRun = options.dryRun ?? false
  const { jobTables } = await extensions.jobTables()
  const { statements } = await jobTables.migrate(options.engine, tables, { dryRun, create: options.new ?? false })
  if (options.json) return terminal.print(JSON.stringify({ tables, dryRun, statements }))
  printStatements(terminal, tables.join(', '), statements, dryRun)
}

async function migrateWorkloads(cli: Cli, options: MigrateOptions, workloads: readonly string[]): Promise<void> {
  const { terminal, clock } = cli
  const dryRun = options.dryRun ?? false
  // All are loaded first, so that a misspelt one changes nothing.
  const migrations = await Promise.all(workloads.map((name) => loadWorkload(cli.extensions, name)))
  for (const [index, migrateTables] of migrations.entries()) {
    const workload = workloads[index] ?? ''
    const statements = await migrateTables(options.engine, { dryRun, nowMs: clock.nowMs() })
    if (options.json) terminal.print(JSON.stringify({ workload, dryRun, statements }))
    else printStatements(terminal, workload, statements, dryRun)
  }
}

function printStatements(terminal: Terminal, of: string, statements: readonly string[], dryRun: boolean): void {
  if (statements.length === 0) terminal.print(`${of}: nothing is missing.`)
  else if (dryRun) terminal.print(`${statements.join(';\n\n')};\n\n-- nothing was changed`)
  else terminal.print(`${of}: ${statements.length === 1 ? '1 statement' : `${statements.length} statements`} run.`)
}
