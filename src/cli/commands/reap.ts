import type { Command } from 'commander'
import { UnsupportedError } from '../../errors.ts'
import type { JobFacts } from '../../events.ts'
import { redact } from '../../job/error-record.ts'
import { reapOnce } from '../../keeper/reaper.ts'
import { newWorkerId } from '../../worker/worker-id.ts'
import { type Cli, examples, type SharedOptions, withExistingMill } from '../cli.ts'
import { loadJobs } from '../modules.ts'
import { reapOwnTables, tableNames } from '../own-tables.ts'
import { printable } from '../terminal.ts'

interface ReapOptions extends SharedOptions {
  readonly jobs?: readonly string[]
  readonly tables?: readonly string[]
}

export function addReap(program: Command, cli: Cli): void {
  program
    .command('reap')
    .summary('recover the jobs of dead workers, once')
    .description('Recover the jobs of dead workers, once: those whose lease has run out are retried, or dead.')
    .option('--jobs <modules...>', 'modules that define the types: their backoff is then used')
    .option('--tables <names>', 'instead of jobs: rows of tables of your own, on Postgres', tableNames)
    .addHelpText(
      'after',
      `${examples([
        ['millrace reap', 'one pass'],
        ['millrace reap --json', 'a line per job, then one with the totals'],
        ['millrace reap --tables jobs,asr_jobs', 'expired leases in your own tables'],
      ])}

Running workers do this every 30 seconds by themselves; use it when there are none, or from cron.`,
    )
    .action((_options, command: Command) => reap(cli, command.optsWithGlobals<ReapOptions>()))
}

interface Recovered {
  readonly job: JobFacts
  readonly attempt: number
  readonly outcome: { readonly kind: string }
}

async function reap(cli: Cli, options: ReapOptions): Promise<void> {
  if (options.tables !== undefined) return reapOwnTables(cli, options, options.tables)
  const { terminal, clock } = cli
  const jobs = options.jobs === undefined ? [] : await loadJobs(options.jobs)
  const definitions = new Map(jobs.map((job) => [job.type, job]))
  const recovered: Recovered[] = []
  const { retried, dead } = await withExistingMill(cli, options.engine, (mill) => {
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
