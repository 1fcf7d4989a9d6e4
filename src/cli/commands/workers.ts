import type { Command } from 'commander'
import type { WorkerCondition, WorkerView } from '../../observe/workers.ts'
import { type Cli, examples, type SharedOptions, withExistingMill } from '../cli.ts'
import { formatDuration } from '../format.ts'
import { heldText, lagOf } from '../held.ts'
import { printable, printTable, type Style } from '../terminal.ts'

export function addWorkers(program: Command, cli: Cli): void {
  program
    .command('workers')
    .summary('list workers, what they run and their condition')
    .description('List the workers of all processes, including missing ones, and what they run.')
    .addHelpText(
      'after',
      `${examples([
        ['millrace workers', 'a line per worker'],
        [`millrace workers --json | jq 'select(.condition == "missing")'`, 'those that vanished'],
      ])}

Conditions:
  working, idle, stopping   normal
  running                   alive; what it does is not known (members of a Kafka group without heartbeats)
  stuck                     jobs wait and it has room, but it has handled none for five minutes
  overdue                   it has been stopping for more than two minutes
  late, missing             its last heartbeat has expired; no heartbeat for a minute

On Kafka these are the members of the group: where each runs, the partitions that it holds (by type) and how many
records it is behind there. With --presence their heartbeats are read too, and say what they run.`,
    )
    .action((_options, command: Command) => list(cli, command.optsWithGlobals<SharedOptions>()))
}

async function list(cli: Cli, flags: SharedOptions): Promise<void> {
  const workers = await withExistingMill(cli, flags, (mill) => mill.workers())
  if (flags.json) for (const worker of workers) cli.terminal.print(JSON.stringify(worker))
  else if (workers.length === 0) cli.terminal.print(`No workers. Start one: millrace start jobs.ts`)
  else printWorkers(cli, workers)
}

const STYLES: Readonly<Record<WorkerCondition, Style>> = {
  working: 'green',
  running: 'green',
  idle: 'dim',
  stopping: 'blue',
  late: 'yellow',
  stuck: 'yellow',
  overdue: 'yellow',
  missing: 'red',
}

function printWorkers({ terminal, clock }: Cli, workers: readonly WorkerView[]): void {
  const nowMs = clock.nowMs()
  const ago = (ms: number | null): string => (ms === null ? '-' : formatDuration(Math.max(0, nowMs - ms)))
  const isShared = workers.some(({ types }) => types.some(({ holds }) => holds !== undefined))
  const columns = [
    { title: 'WORKER' },
    { title: 'CONDITION' },
    { title: 'RUNS', align: 'right' },
    { title: 'UP', align: 'right' },
    { title: 'HEARD', align: 'right' },
    { title: 'LAST JOB', align: 'right' },
    ...(isShared
      ? [{ title: 'HOST' }, { title: 'LAG', align: 'right' } as const, { title: 'HOLDS' }]
      : [{ title: 'TYPES' }]),
  ] as const
  const rows = workers.map((worker) => [
    printable(worker.id),
    terminal.paint(STYLES[worker.condition], worker.condition),
    worker.concurrency === null ? '-' : `${worker.running}/${worker.concurrency}`,
    ago(worker.startedAtMs),
    ago(worker.seenAtMs),
    ago(lastJobAtMs(worker)),
    ...(isShared
      ? [printable(worker.host ?? '-'), String(lagOf(worker.types)), printable(heldText(worker.types))]
      : [printable(worker.types.map(({ type }) => type).join(', '))]),
  ])
  printTable(terminal, columns, rows)
  for (const { id, action } of workers) if (action !== null) terminal.print(`${printable(id)} → ${action}`)
}

function lastJobAtMs({ types }: WorkerView): number | null {
  const times = types.flatMap((type) => type.lastJobAtMs ?? [])
  return times.length === 0 ? null : Math.max(...times)
}
