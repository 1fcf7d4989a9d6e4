import { type Command, Option } from 'commander'
import { OptionError } from '../../errors.ts'
import type { JobView } from '../../job/job.ts'
import { JOB_STATES, type JobState } from '../../job/states.ts'
import { wholeNumber } from '../arguments.ts'
import { type Cli, examples, type SharedOptions, withExistingMill } from '../cli.ts'
import { detailOf, formatDuration, styleOf, triesOf } from '../format.ts'
import { printable, printTable } from '../terminal.ts'

interface JobsOptions extends SharedOptions {
  readonly status?: JobState
  readonly type?: string
  readonly limit: number
  readonly before?: string
}

const LIMIT_DEFAULT = 20
const LIMIT_MAX = 1_000

export function addJobs(program: Command, cli: Cli): void {
  program
    .command('jobs')
    .summary('list jobs')
    .description('List jobs, newest first, without payloads and results.')
    .addOption(new Option('--status <state>', 'only jobs in this state').choices(JOB_STATES))
    .option('--type <type>', 'only jobs of this type')
    .option('--limit <n>', `at most this many, up to ${LIMIT_MAX}`, wholeNumber, LIMIT_DEFAULT)
    .option('--before <id>', 'only jobs older than this one, for the next page')
    .addHelpText(
      'after',
      `${examples([
        ['millrace jobs', `the newest ${LIMIT_DEFAULT}`],
        ['millrace jobs --status dead_letter', 'jobs that failed for good'],
        ['millrace jobs --type greet --limit 5', 'the newest five of one type'],
        ['millrace jobs --json | jq -r .id', 'for a script'],
      ])}

On Kafka these are the latest records of the group's topics, with what the group has committed of each. A log can be
listed by --type, and by --status in_progress alone; it does not keep when a record ran, how often, or its result.`,
    )
    .action((_options, command: Command) => listJobs(cli, command.optsWithGlobals<JobsOptions>()))
}

async function listJobs(cli: Cli, options: JobsOptions): Promise<void> {
  const { status, type, limit, before } = options
  if (limit < 1 || limit > LIMIT_MAX) {
    throw new OptionError(`'limit' is ${limit}; give a whole number from 1 to ${LIMIT_MAX}`)
  }
  const filter = { limit, ...(status && { state: status }), ...(type && { type }), ...(before && { before }) }
  const views = await withExistingMill(cli, options, (mill) => mill.jobs(filter))
  if (options.json) {
    for (const { payload: _, result: __, ...shown } of views) cli.terminal.print(JSON.stringify(shown))
    return
  }
  if (views.length === 0) return cli.terminal.print('No jobs.')
  printViews(cli, views)
  const last = views.at(-1)
  if (views.length === limit && last !== undefined) {
    cli.terminal.print(cli.terminal.paint('dim', `Older ones: add --before ${last.id}`))
  }
}

function printViews({ terminal, clock }: Cli, views: readonly JobView[]): void {
  const nowMs = clock.nowMs()
  const columns = [
    { title: 'ID', whole: true },
    { title: 'TYPE' },
    { title: 'STATE' },
    { title: 'PRI', align: 'right' },
    { title: 'TRY', align: 'right' },
    { title: 'AGE', align: 'right' },
    { title: 'DETAIL' },
  ] as const
  const rows = views.map((view) => [
    printable(view.id),
    printable(view.type),
    terminal.paint(styleOf(view), view.state),
    String(view.priority),
    triesOf(view),
    formatDuration(nowMs - view.createdAtMs),
    detailOf(view, nowMs),
  ])
  printTable(terminal, columns, rows)
}
