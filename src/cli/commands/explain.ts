import type { Command } from 'commander'
import { explainJob } from '../../explain/explain.ts'
import type { Explanation } from '../../explain/explanation.ts'
import { type Cli, examples, type SharedOptions, withExistingMill } from '../cli.ts'
import { loadJobs } from '../modules.ts'
import { printable } from '../terminal.ts'

interface ExplainFlags extends SharedOptions {
  readonly jobs?: readonly string[]
}

export function addExplain(program: Command, cli: Cli): void {
  program
    .command('explain')
    .summary('say why a job is not running')
    .description('Say why a job is not running, or what it does.')
    .argument('<id>', 'the id that enqueue printed')
    .option('--jobs <modules...>', 'modules that define the type: its limit and concurrency are then known')
    .addHelpText(
      'after',
      examples([
        ['millrace explain 01K5X…', 'what holds it back, and the jobs that do'],
        ['millrace explain 01K5X… --jobs jobs.ts', 'also whether its rate limit does'],
        ['millrace explain 01K5X… --json | jq -r .because', 'one word, for a script'],
      ]),
    )
    .action((id: string, _options, command: Command) => explain(cli, id, command.optsWithGlobals<ExplainFlags>()))
}

async function explain(cli: Cli, id: string, flags: ExplainFlags): Promise<void> {
  const { clock, terminal } = cli
  const jobs = await loadJobs(flags.jobs ?? [])
  const explanation = await withExistingMill(cli, flags.engine, (mill) => explainJob(mill, id, { jobs, clock }))
  if (flags.json) return terminal.print(JSON.stringify({ id, ...explanation }))
  printExplanation(cli, explanation)
  for (const job of explanation.jobs) {
    terminal.print(`  ${[job.id, job.type || '-', job.state].map(printable).join(' ')}`)
  }
}

/** Reasons and errors in it may come from other people and programs. */
export function printExplanation({ terminal }: Cli, { text, also }: Explanation): void {
  terminal.print(terminal.paint('bold', printable(text)))
  for (const one of also) terminal.print(printable(one))
}
