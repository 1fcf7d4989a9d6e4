import type { Command } from 'commander'
import type { Mill } from '../../client/mill.ts'
import { UnknownJobError } from '../../errors.ts'
import { explainJob } from '../../explain/explain.ts'
import type { Explanation } from '../../explain/explanation.ts'
import type { JobEvent, JobView } from '../../job/job.ts'
import { type Cli, examples, type SharedOptions, withExistingMill } from '../cli.ts'
import { formatDuration, formatTime, styleOf, triesOf } from '../format.ts'
import { loadJobs } from '../modules.ts'
import { printable, printTable } from '../terminal.ts'
import { followLog, printLog } from './job-logs.ts'

interface JobOptions extends SharedOptions {
  readonly payload?: true
  readonly logs?: true
  readonly follow?: true
}

export function addJob(program: Command, cli: Cli): void {
  program
    .command('job')
    .summary('show one job and its history')
    .description('Show one job: why it is not running or what it does, its properties and its history.')
    .argument('<id>', 'the id that enqueue printed; on Kafka also topic/partition/offset')
    .option('--payload', 'also show the payload, which may hold secrets')
    .option('--logs', 'also show what its handler said')
    .option('--follow', 'only what its handler says, line by line, until the job is over')
    .addHelpText(
      'after',
      examples([
        ['millrace job 01K5X…', 'its state, times, result or error, and history'],
        ['millrace job 01K5X… --payload', 'with its payload'],
        ['millrace job 01K5X… --logs', 'with what its handler said by `log`'],
        ['millrace job 01K5X… --follow', 'what it says from now on, and what is kept of before'],
        ['millrace job bill/3/1042', 'the record at that place, on Kafka'],
        ['millrace job 01K5X… --json | jq .history', 'for a script'],
      ]),
    )
    .action((id: string, _options, command: Command) => showJob(cli, id, command.optsWithGlobals<JobOptions>()))
}

async function showJob(cli: Cli, id: string, options: JobOptions): Promise<void> {
  if (options.follow) {
    await withExistingMill(cli, options, async (mill) => {
      if ((await mill.job(id)) === null) throw new UnknownJobError(id)
      await followLog(cli, mill, id, options)
    })
    return
  }
  const { view, history, before, explanation, log } = await withExistingMill(cli, options, async (mill) => {
    const view = await mill.job(id)
    if (view === null) throw new UnknownJobError(id)
    const explanation = await explainJob(mill, id, { clock: cli.clock })
    const history = (await mill.engine.inspector?.history(view.id)) ?? []
    const log = options.logs ? await mill.logs(view.id) : null
    return { view, history, before: await readBefore(mill, view), explanation, log }
  })
  if (options.json) {
    const { payload, ...rest } = view
    const more = { predecessors: before, history, explanation, ...(log !== null && { log }) }
    const shown = { ...rest, ...(options.payload && { payload }), ...more }
    cli.terminal.print(JSON.stringify(shown))
    return
  }
  printExplanation(cli, explanation)
  cli.terminal.print('')
  printFacts(cli, view, options.payload ?? false)
  printBefore(cli, view, before)
  printHistory(cli, history)
  if (log !== null) printLog(cli, log)
}

function printFacts({ terminal, clock }: Cli, view: JobView, withPayload: boolean): void {
  const nowMs = clock.nowMs()
  const due =
    view.state === 'queued' && Number.isFinite(view.runAtMs) && view.runAtMs > nowMs
      ? ` (in ${formatDuration(view.runAtMs - nowMs)})`
      : ''
  const tenant = view.tenant === null ? null : [view.tenant.orgId, view.tenant.workspaceId].filter(Boolean).join('/')
  const lease = view.leaseOwner === null ? null : `${view.leaseOwner} until ${formatTime(view.leaseUntilMs)}`
  const facts: readonly (readonly [name: string, value: string | null])[] = [
    ['id', view.id],
    ['type', view.type],
    ['state', terminal.paint(styleOf(view), view.state)],
    ['priority', String(view.priority)],
    ['attempt', triesOf(view, ' of ')],
    ['key', view.key],
    ['latest', view.latestKey],
    ['tenant', tenant],
    ['tags', view.tags.length === 0 ? null : view.tags.join(', ')],
    ['enqueued', `${formatTime(view.createdAtMs)} (${formatDuration(nowMs - view.createdAtMs)} ago)`],
    ['due', `${formatTime(view.runAtMs)}${due}`],
    ['started', view.startedAtMs === null ? null : formatTime(view.startedAtMs)],
    ['finished', view.completedAtMs === null ? null : formatTime(view.completedAtMs)],
    ['took', view.durationMs === null ? null : formatDuration(view.durationMs)],
    ['lease', lease],
    ['progress', json(view.progress)],
    ['result', json(view.result)],
    ['error', view.error === null ? null : `${view.error.name}: ${view.error.message}`],
    ['payload', withPayload ? view.payload : null],
  ]
  for (const [name, value] of facts) {
    if (value === null) continue
    // Only the state is ours and may have colour codes; the rest may come from another program.
    terminal.print(`${terminal.paint('dim', name.padEnd(9))} ${name === 'state' ? value : printable(value)}`)
  }
}

/** A predecessor of the job. */
interface Before {
  readonly id: string
  readonly type: string | null
  readonly state: string
}

async function readBefore(mill: Mill, { after }: JobView): Promise<readonly Before[]> {
  const before: Before[] = []
  for (const id of after?.ids ?? []) {
    const one = await mill.job(id)
    before.push({ id, type: one?.type ?? null, state: one === null ? 'removed' : one.state })
  }
  return before
}

/** More would hide the history. */
const BEFORE_SHOWN_MAX = 10

function printBefore({ terminal }: Cli, view: JobView, before: readonly Before[]): void {
  if (view.after === null) return
  const isOpen = ({ state }: Before): boolean => state !== 'completed'
  const open = before.filter(isOpen)
  const done = `${before.length - open.length} of ${before.length} completed`
  terminal.print(`${terminal.paint('dim', 'after'.padEnd(9))} ${done}, if one is dead: ${view.after.ifDead}`)
  // The open ones first: they hold it back.
  const shown = [...open, ...before.filter((one) => !isOpen(one))].slice(0, BEFORE_SHOWN_MAX)
  for (const { id, type, state } of shown) {
    terminal.print(`${' '.repeat(9)} ${printable(id)} ${printable(type ?? '-')} ${state}`)
  }
  if (before.length > shown.length) terminal.print(`${' '.repeat(9)} and ${before.length - shown.length} more`)
}

function json(value: unknown): string | null {
  return value === null || value === undefined ? null : JSON.stringify(value)
}

function printHistory({ terminal }: Cli, history: readonly JobEvent[]): void {
  if (history.length === 0) return
  terminal.print('')
  const columns = [
    { title: 'WHEN', whole: true },
    { title: 'EVENT' },
    { title: 'TRY', align: 'right' },
    { title: 'WORKER' },
    { title: 'DETAIL' },
  ] as const
  const rows = history.map((event) => [
    formatTime(event.atMs),
    event.name,
    String(event.attempt),
    printable(event.worker ?? '-'),
    printable(json(event.detail) ?? ''),
  ])
  printTable(terminal, columns, rows)
}

interface ExplainFlags extends SharedOptions {
  readonly jobs?: readonly string[]
}

export function addExplain(program: Command, cli: Cli): void {
  program
    .command('explain')
    .summary('say why a job is not running')
    .description('Say why a job is not running, or what it does.')
    .argument('<id>', 'the id that enqueue printed')
    .option('--jobs <modules...>', 'modules that define the type, to know its limit and concurrency')
    .addHelpText(
      'after',
      examples([
        ['millrace explain 01K5X…', 'what holds it back, and which jobs do'],
        ['millrace explain 01K5X… --jobs jobs.ts', 'also considers its rate limit'],
        ['millrace explain 01K5X… --json | jq -r .because', 'one word, for a script'],
      ]),
    )
    .action((id: string, _options, command: Command) => explain(cli, id, command.optsWithGlobals<ExplainFlags>()))
}

async function explain(cli: Cli, id: string, flags: ExplainFlags): Promise<void> {
  const { clock, terminal } = cli
  const jobs = await loadJobs(flags.jobs ?? [])
  const explanation = await withExistingMill(cli, flags, (mill) => explainJob(mill, id, { jobs, clock }))
  if (flags.json) return terminal.print(JSON.stringify({ id, ...explanation }))
  printExplanation(cli, explanation)
  for (const job of explanation.jobs) {
    terminal.print(`  ${[job.id, job.type || '-', job.state].map(printable).join(' ')}`)
  }
}

/** Printable, because reasons and errors come from users and other programs. */
export function printExplanation({ terminal }: Cli, { text, also }: Explanation): void {
  terminal.print(terminal.paint('bold', printable(text)))
  for (const one of also) terminal.print(printable(one))
}
