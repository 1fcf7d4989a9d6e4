import type { Command } from 'commander'
import { UnsupportedError } from '../../errors.ts'
import type { JobFacts } from '../../events.ts'
import { redact } from '../../job/error-record.ts'
import { reapOnce } from '../../keeper/reaper.ts'
import { newWorkerId } from '../../worker/worker-id.ts'
import { namesIn } from '../arguments.ts'
import { type Cli, examples, type SharedOptions, withExistingMill } from '../cli.ts'
import type { ReapedRow } from '../extensions.ts'
import { loadJobs } from '../modules.ts'
import { printable } from '../terminal.ts'

interface ReapOptions extends SharedOptions {
  readonly jobs?: readonly string[]
  readonly tables?: readonly string[]
}

export function addReap(program: Command, cli: Cli): void {
  program
    .command('reap')
    .summary('recover the jobs of dead workers, once')
    .description(
      'Recover the jobs of dead workers, once. A job whose lease has expired is retried or becomes a dead letter.',
    )
    .option('--jobs <modules...>', 'modules that define the types, to use their backoff')
    .option('--tables <names>', 'reap rows of your own job tables on Postgres instead', tableNames)
    .addHelpText(
      'after',
      `${examples([
        ['millrace reap', 'one pass'],
        ['millrace reap --json', 'a line per job, then one with the totals'],
        ['millrace reap --tables jobs,asr_jobs', 'expired leases in your own job tables'],
      ])}

Running workers do this every 30 seconds. Use it without workers, or from cron.`,
    )
    .action((_options, command: Command) => reap(cli, command.optsWithGlobals<ReapOptions>()))
}

/** The value of `--tables`. */
export function tableNames(text: string): readonly string[] {
  return namesIn(text, 'names of tables, such as jobs,asr_jobs')
}

interface Recovered {
  readonly job: JobFacts
  readonly attempt: number
  readonly outcome: { readonly kind: string }
}

async function reap(cli: Cli, options: ReapOptions): Promise<void> {
  if (options.tables !== undefined) return reapTables(cli, options, options.tables)
  const { terminal, clock } = cli
  const jobs = options.jobs === undefined ? [] : await loadJobs(options.jobs)
  const definitions = new Map(jobs.map((job) => [job.type, job]))
  const recovered: Recovered[] = []
  const { retried, dead } = await withExistingMill(cli, options, (mill) => {
    mill.events.on('lease.reaped', (event) => recovered.push(event))
    const { engine, events } = mill
    if (engine.capabilities.recovery !== 'reaper') {
      throw new UnsupportedError({ engine: engine.name, limit: 'recovers expired leases by itself' })
    }
    return reapOnce({
      engine,
      events,
      definitions,
      clock,
      random: Math.random,
      redactor: redact,
      worker: newWorkerId(),
    })
  })
  for (const { job, attempt, outcome } of recovered) {
    const facts = { id: job.id, type: job.type, attempt, attempts: job.attempts, outcome: outcome.kind }
    terminal.print(
      options.json
        ? JSON.stringify(facts)
        : `${printable(job.id)} ${printable(job.type)} ${outcome.kind} (start ${attempt} of ${job.attempts})`,
    )
  }
  terminal.print(options.json ? JSON.stringify({ retried, dead }) : `${retried} back in the queue, ${dead} dead.`)
}

async function reapTables(cli: Cli, options: SharedOptions, tables: readonly string[]): Promise<void> {
  const { terminal } = cli
  const rows: ReapedRow[] = []
  const { jobTables } = await cli.extensions.jobTables()
  const { requeuedIds, failedIds } = await jobTables.reap(options.engine, tables, {
    environment: process.env,
    onReaped: (row) => rows.push(row),
  })
  for (const { table, id, action, attempt, lockedBy } of rows) {
    terminal.print(
      options.json
        ? JSON.stringify({ table, id, action, attempt, lockedBy })
        : `${printable(table)} ${printable(id)} ${action} (start ${attempt}, locked by ${printable(lockedBy ?? '-')})`,
    )
  }
  const [requeued, failed] = [requeuedIds.length, failedIds.length]
  terminal.print(options.json ? JSON.stringify({ requeued, failed }) : `${requeued} requeued, ${failed} failed.`)
}
