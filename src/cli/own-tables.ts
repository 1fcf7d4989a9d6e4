import { InvalidArgumentError } from 'commander'
import type { Cli, SharedOptions } from './cli.ts'
import type { ReapedRow } from './extensions.ts'
import { printable } from './terminal.ts'

/** An option that names tables, separated by commas. */
export function tableNames(text: string): readonly string[] {
  const names = text.split(',').map((name) => name.trim())
  if (names.includes('')) throw new InvalidArgumentError('It must be names of tables, such as jobs,asr_jobs.')
  return names
}

/** `millrace reap --tables`: one run of document E's reaper over tables of the user's own. */
export async function reapOwnTables(
  { terminal, extensions }: Cli,
  options: SharedOptions,
  tables: readonly string[],
): Promise<void> {
  const rows: ReapedRow[] = []
  const { jobTables } = await extensions.jobTables()
  const said = { environment: process.env, onReaped: (row: ReapedRow) => void rows.push(row) }
  const { requeuedIds, failedIds } = await jobTables.reap(options.engine, tables, said)
  for (const { table, id, action, attempt, lockedBy } of rows) {
    terminal.print(
      options.json
        ? JSON.stringify({ table, id, action, attempt, lockedBy })
        : `${printable(table)} ${printable(id)} ${action} (start ${attempt}, held by ${printable(lockedBy ?? 'nobody')})`,
    )
  }
  const [requeued, failed] = [requeuedIds.length, failedIds.length]
  terminal.print(options.json ? JSON.stringify({ requeued, failed }) : `${requeued} requeued, ${failed} failed.`)
}

/** `millrace migrate --tables`: the lease columns for tables of the user's own. */
export async function migrateOwnTables(
  { terminal, extensions }: Cli,
  options: SharedOptions & { readonly dryRun?: true },
  tables: readonly string[],
): Promise<void> {
  const dryRun = options.dryRun ?? false
  const { jobTables } = await extensions.jobTables()
  const { statements } = await jobTables.migrate(options.engine, tables, { dryRun })
  if (options.json) return terminal.print(JSON.stringify({ tables, dryRun, statements }))
  if (statements.length === 0) return terminal.print(`${tables.join(', ')}: nothing is missing.`)
  if (dryRun) return terminal.print(`${statements.join(';\n\n')};\n\n-- nothing was changed`)
  terminal.print(`${tables.join(', ')}: ${statements.length} statements run.`)
}
