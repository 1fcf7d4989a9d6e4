import { type Command, Option } from 'commander'
import { OptionError } from '../../errors.ts'
import type { JobView } from '../../job/job.ts'
import { omitUndefined } from '../../job/known-options.ts'
import { formatSearch } from '../../job/search.ts'
import { JOB_STATES, type JobState } from '../../job/states.ts'
import { wholeNumber } from '../arguments.ts'
import { type Cli, examples, type SharedOptions, withExistingMill } from '../cli.ts'
import { detailOf, formatDuration, formatTime, styleOf, triesOf } from '../format.ts'
import { printable, printTable } from '../terminal.ts'

interface JobsOptions extends SharedOptions {
  readonly status?: JobState
  readonly type?: string
  readonly limit: number
  readonly before?: string
  readonly search?: string
  readonly tag?: readonly string[]
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
    .option('--search <search>', 'only jobs that a search finds, such as "error:ECONNREFUSED since:1h"')
    .option('--tag <tags...>', 'only jobs with all of these tags')
    .option('--limit <n>', `at most this many, up to ${LIMIT_MAX}`, wholeNumber, LIMIT_DEFAULT)
    .option('--before <id>', 'only jobs older than this one, for the next page')
    .addHelpText(
      'after',
      `${examples([
        ['millrace jobs', `the newest ${LIMIT_DEFAULT}`],
        ['millrace jobs --status dead_letter', 'jobs that failed for good'],
        ['millrace jobs --type greet --limit 5', 'the newest five of one type'],
        [`millrace jobs --search 'type:mail error:ECONNREFUSED since:1h'`, 'what failed so in the last hour'],
        ['millrace jobs --tag import-7', 'the jobs of one import'],
        ['millrace jobs --json | jq -r .id', 'for a script'],
      ])}

A search has terms that must all hold: id, type, state, key, tenant, tag, error, since, until and payload.<field>, each with
a colon and a value, and words that may stand in any of them: see docs/dashboard.md. It goes on for up to 5 seconds.

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
  if (options.search !== undefined || options.tag !== undefined) return searchJobs(cli, options)
  const filter = { limit, ...(status && { state: status }), ...(type && { type }), ...(before && { before }) }
  const views = await withExistingMill(cli, options, (mill) => mill.jobs(filter))
  if (options.json) return printLines(cli, views)
  if (views.length === 0) return cli.terminal.print('No jobs.')
  printViews(cli, views)
  const last = views.at(-1)
  if (views.length === limit && last !== undefined) {
    cli.terminal.print(cli.terminal.paint('dim', `Older ones: add --before ${last.id}`))
  }
}

/** Beyond this a search says how far it has looked. */
const SEARCH_MS = 5_000

async function searchJobs(cli: Cli, options: JobsOptions): Promise<void> {
  const { status, type, limit, tag: tags = [] } = options
  const given = formatSearch({ ...omitUndefined({ type, state: status }), tags, errors: [], payload: [], words: [] })
  const text = `${options.search ?? ''} ${given}`
  const startedMs = cli.clock.monotonicMs()
  const views: JobView[] = []
  let [looked, before, reachedMs]: [number, string | null | undefined, number | null] = [0, options.before, null]
  await withExistingMill(cli, options, async (mill) => {
    do {
      const page = await mill.search(text, { limit: limit - views.length, ...(before != null && { before }) })
      views.push(...page.jobs)
      looked += page.looked
      ;({ next: before, reachedMs } = page)
    } while (before !== null && views.length < limit && cli.clock.monotonicMs() - startedMs < SEARCH_MS)
  })
  if (options.json) return printLines(cli, views)
  if (views.length > 0) printViews(cli, views)
  else cli.terminal.print(before === null ? 'No jobs.' : 'No jobs found yet.')
  if (before === null) return
  const back = reachedMs === null ? '' : ` back to ${formatTime(reachedMs)}`
  cli.terminal.print(cli.terminal.paint('dim', `Looked at ${looked} jobs${back}. Look further: add --before ${before}`))
}

function printLines({ terminal }: Cli, views: readonly JobView[]): void {
  for (const { payload: _, result: __, ...shown } of views) terminal.print(JSON.stringify(shown))
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
