import type { Command } from 'commander'
import type { Causes } from '../../desk/groups.ts'
import type { Letter } from '../../desk/selection.ts'
import type { AuditEntry } from '../../engine/dead-letters.ts'
import { type Cli, examples, type SharedOptions } from '../cli.ts'
import {
  addDeadDiscard,
  addDeadErase,
  addDeadPurge,
  addDeadReplay,
  addDeadReplayAll,
  addDeadUndo,
} from '../dead/act.ts'
import { type FilterFlags, tellBefore, toFilter, withDesk, withFilter } from '../dead/letters.ts'
import { formatDuration, formatTime } from '../format.ts'
import { printable, printTable } from '../terminal.ts'

export function addDead(program: Command, cli: Cli): void {
  const dead = program
    .command('dead')
    .summary('list, replay, discard, purge or erase dead letters')
    .description('List dead letters and act on them. Every act is audited: see millrace audit.')
    .addHelpText(
      'after',
      examples([
        ['millrace dead', 'the newest of them'],
        ['millrace dead --groups', 'the causes and how often they occur'],
        ['millrace dead replay 01K5X…', 'run one again'],
        ['millrace dead replay-all --type bill --dry-run', 'count the matching letters'],
        ['millrace dead discard 01K5X… --reason "sent by hand"', 'take one off the list'],
      ]),
    )
  const commands = [
    addDeadList,
    addDeadShow,
    addDeadReplay,
    addDeadReplayAll,
    addDeadDiscard,
    addDeadUndo,
    addDeadPurge,
    addDeadErase,
  ]
  for (const add of commands) add(dead, cli)
}

interface ListFlags extends SharedOptions, FilterFlags {
  readonly groups?: true
}

interface ShowFlags extends SharedOptions {
  readonly payload?: true
}

const LIMIT_DEFAULT = 100

export function addDeadList(dead: Command, cli: Cli): void {
  withFilter(dead.command('list', { isDefault: true }))
    .summary('list dead letters, or their causes')
    .description(`List dead letters, newest first (default: ${LIMIT_DEFAULT}), without payloads.`)
    .option('--groups', 'one line per cause, the most frequent first')
    .addHelpText(
      'after',
      examples([
        ['millrace dead', 'the newest of them'],
        ['millrace dead list --groups', 'the causes and how often they occur'],
        ['millrace dead list --error 3f2a9c0d11e4', 'the letters of one cause'],
        ['millrace dead list --type bill --newer-than 1h', 'one type, in the last hour'],
        ['millrace dead list --search tag:import-7', 'those of one import'],
        ['millrace dead list --json | jq -r .job.id', 'for a script'],
      ]),
    )
    .action((_options, command: Command) => list(cli, command.optsWithGlobals<ListFlags>()))
}

async function list(cli: Cli, flags: ListFlags): Promise<void> {
  const filter = toFilter(cli, flags)
  if (flags.groups) return printGroups(cli, flags, await withDesk(cli, flags, (desk) => desk.causes(filter)))
  const letters = await withDesk(cli, flags, (desk) => desk.list({ limit: LIMIT_DEFAULT, ...filter }))
  if (flags.json) for (const letter of letters) cli.terminal.print(JSON.stringify(withoutPayload(letter)))
  else if (letters.length === 0) cli.terminal.print('No dead letters.')
  else {
    printLetters(cli, letters)
    const limit = filter.limit ?? LIMIT_DEFAULT
    if (letters.length === limit) {
      cli.terminal.print(cli.terminal.paint('dim', `the newest ${limit}; see more with --limit, or --groups`))
    }
  }
}

function withoutPayload({ job, ...rest }: Letter): object {
  const { payload: _, result: __, error: ___, ...facts } = job
  return { job: facts, ...rest }
}

function printLetters({ terminal, clock }: Cli, letters: readonly Letter[]): void {
  const nowMs = clock.nowMs()
  const columns = [
    { title: 'ID', whole: true },
    { title: 'TYPE' },
    { title: 'TRY', align: 'right' },
    { title: 'REPLAYS', align: 'right' },
    { title: 'AGE', align: 'right' },
    { title: 'DIED', align: 'right' },
    { title: 'CAUSE', whole: true },
    { title: 'ERROR' },
  ] as const
  const rows = letters.map(({ job, error, fingerprint }) => [
    printable(job.id),
    printable(job.type),
    `${job.attempt}/${job.attempts}`,
    String(job.replays),
    formatDuration(nowMs - job.createdAtMs),
    formatDuration(nowMs - (job.completedAtMs ?? nowMs)),
    fingerprint,
    printable(`${error.name}: ${error.message}`),
  ])
  printTable(terminal, columns, rows)
}

function printGroups({ terminal, clock }: Cli, flags: ListFlags, { groups, selection }: Causes): void {
  if (flags.json) {
    for (const group of groups) terminal.print(JSON.stringify(group))
    return
  }
  if (groups.length === 0) {
    terminal.print('No dead letters.')
    return
  }
  const nowMs = clock.nowMs()
  const columns = [
    { title: 'CAUSE', whole: true },
    { title: 'LETTERS', align: 'right' },
    { title: 'TYPE' },
    { title: 'FIRST', align: 'right' },
    { title: 'LAST', align: 'right' },
    { title: 'ERROR' },
  ] as const
  const rows = groups.map((group) => [
    group.fingerprint,
    String(group.count),
    printable(group.type),
    formatDuration(nowMs - group.oldestAtMs),
    formatDuration(nowMs - group.newestAtMs),
    printable(group.error),
  ])
  printTable(terminal, columns, rows)
  tellBefore(terminal, selection)
}

export function addDeadShow(dead: Command, cli: Cli): void {
  dead
    .command('show')
    .summary('show one dead letter')
    .description('Show one dead letter with its error, its history and what was done to it.')
    .argument('<id>', 'its id, as dead list prints it')
    .option('--payload', 'also show the payload, which may hold secrets')
    .addHelpText('after', examples([['millrace dead show 01K5X…', 'why it died, with the stack']]))
    .action((id: string, _options, command: Command) => show(cli, id, command.optsWithGlobals<ShowFlags>()))
}

async function show(cli: Cli, id: string, flags: ShowFlags): Promise<void> {
  const { terminal } = cli
  const shown = await withDesk(cli, flags, (desk) => desk.show(id))
  const { job, error, fingerprint, history, audit } = shown
  if (flags.json) {
    const payload = flags.payload && { payload: job.payload }
    return terminal.print(JSON.stringify({ ...withoutPayload(shown), ...payload }))
  }
  const tenant = job.tenant === null ? null : [job.tenant.orgId, job.tenant.workspaceId].filter(Boolean).join('/')
  const facts: readonly (readonly [name: string, value: string | null])[] = [
    ['id', job.id],
    ['type', job.type],
    ['state', job.state === 'dead_letter' ? 'dead letter' : job.state],
    ['attempt', `${job.attempt} of ${job.attempts}`],
    ['replays', String(job.replays)],
    ['key', job.key],
    ['tenant', tenant],
    ['enqueued', formatTime(job.createdAtMs)],
    ['died', formatTime(job.completedAtMs)],
    ['cause', fingerprint],
    ['error', `${error.name}: ${error.message}`],
    ['code', error.code],
    ['payload', flags.payload ? job.payload : null],
  ]
  for (const [name, value] of facts) {
    if (value !== null) terminal.print(`${terminal.paint('dim', name.padEnd(9))} ${printable(value)}`)
  }
  for (const line of error.stack?.split('\n') ?? []) terminal.print(terminal.paint('dim', `  ${printable(line)}`))
  terminal.print('')
  const columns = [
    { title: 'WHEN', whole: true },
    { title: 'EVENT' },
    { title: 'TRY', align: 'right' },
    { title: 'DETAIL' },
  ] as const
  const rows = history.map((event) => [
    formatTime(event.atMs),
    event.name,
    String(event.attempt),
    printable(event.detail === null ? '' : JSON.stringify(event.detail)),
  ])
  printTable(terminal, columns, rows)
  if (audit.length === 0) return
  terminal.print('')
  printAudit(cli, audit)
}

export function printAudit({ terminal }: Cli, entries: readonly AuditEntry[]): void {
  const columns = [
    { title: 'NO', align: 'right' },
    { title: 'WHEN', whole: true },
    { title: 'WHO' },
    { title: 'ACT' },
    { title: 'JOB', whole: true },
    { title: 'TYPE' },
    { title: 'REASON' },
  ] as const
  const rows = entries.map((entry) => [
    String(entry.seq),
    formatTime(entry.atMs),
    printable(entry.who),
    entry.action,
    printable(entry.subject ?? entry.jobId),
    printable(entry.type),
    printable(entry.reason),
  ])
  printTable(terminal, columns, rows)
}
