/** What the commands about schedules share: how one is told. */
import type { Command } from 'commander'
import type { Mill } from '../../client/mill.ts'
import type { NotedAction } from '../../engine/dead-letters.ts'
import { overdueSchedules, type ScheduleView } from '../../keeper/schedule-state.ts'
import { audited, type Cli, type SharedOptions, withExistingMill } from '../cli.ts'
import { formatDuration, formatTime } from '../format.ts'
import { printable, printTable } from '../terminal.ts'

/** Beyond this a tick that nobody has run is marked: every keeper would have done it by now. */
export const OVERDUE_MS = 60_000

export function withSchedules<Answer>(
  cli: Cli,
  flags: SharedOptions,
  use: (schedules: Mill['schedules'], mill: Mill) => Promise<Answer>,
): Promise<Answer> {
  return withExistingMill(cli, flags.engine, (mill) => use(mill.schedules, mill))
}

/** Changes a schedule, and writes that into the audit. */
export async function changeSchedule(
  cli: Cli,
  mill: Mill,
  { name, action }: { readonly name: string; readonly action: NotedAction },
  change: () => Promise<ScheduleView>,
): Promise<ScheduleView> {
  const before = await mill.schedules.find(name)
  const after = await change()
  await audited(cli, mill, {
    ...{ action, subject: name, type: after.type, after: timesOf(after) },
    ...(before !== null && { before: timesOf(before) }),
  })
  return after
}

/** What the audit says of a schedule: never its payload. */
export function timesOf({ cron, tz, paused, nextAtMs }: ScheduleView): Readonly<Record<string, unknown>> {
  return { cron, tz, paused, nextAtMs }
}

export function flagsOf<Flags extends SharedOptions>(command: Command): Flags {
  return command.optsWithGlobals<Flags>()
}

/** The payload may hold what others must not see, and `declared` repeats it. */
export function withoutPayload(view: ScheduleView, nowMs: number): object {
  const { payload: _, declared, ...facts } = view
  return { ...facts, declared: declared !== null, overdue: isOverdue(view, nowMs) }
}

function isOverdue(view: ScheduleView, nowMs: number): boolean {
  return overdueSchedules([view], nowMs, OVERDUE_MS).length > 0
}

/** In one word, or when it runs next. */
function nextOf(view: ScheduleView, nowMs: number): string {
  if (view.paused) return 'paused'
  if (view.nextAtMs === null) return 'over'
  if (isOverdue(view, nowMs)) return `OVERDUE ${formatDuration(nowMs - view.nextAtMs)}`
  return view.nextAtMs <= nowMs ? 'now' : `in ${formatDuration(view.nextAtMs - nowMs)}`
}

export function printSchedules({ terminal, clock }: Cli, views: readonly ScheduleView[]): void {
  const nowMs = clock.nowMs()
  const columns = [
    { title: 'NAME' },
    { title: 'TYPE' },
    { title: 'CRON' },
    { title: 'ZONE' },
    { title: 'NEXT' },
    { title: 'LAST' },
    { title: 'RUNS', align: 'right' },
    { title: 'SKIPPED', align: 'right' },
    { title: 'MISSED', align: 'right' },
  ] as const
  const rows = views.map((view) => {
    const next = nextOf(view, nowMs)
    return [
      printable(view.name),
      printable(view.type),
      printable(view.cron),
      printable(view.tz),
      next.startsWith('OVERDUE') ? terminal.paint('red', next) : next,
      view.lastTickMs === null ? '-' : `${formatDuration(nowMs - view.lastTickMs)} ago`,
      view.limit === null ? String(view.runs) : `${view.runs}/${view.limit}`,
      String(view.skips),
      String(view.missedTicks),
    ]
  })
  printTable(terminal, columns, rows)
}

export function printFacts({ terminal, clock }: Cli, view: ScheduleView, withPayload: boolean): void {
  const nowMs = clock.nowMs()
  const facts: readonly (readonly [name: string, value: string | null])[] = [
    ['name', view.name],
    ['type', view.type],
    ['cron', `${view.cron} (${view.tz})`],
    ['next', view.nextAtMs === null ? nextOf(view, nowMs) : `${formatTime(view.nextAtMs)} (${nextOf(view, nowMs)})`],
    ['start', view.startMs === null ? null : formatTime(view.startMs)],
    ['end', view.endMs === null ? null : formatTime(view.endMs)],
    ['runs', view.limit === null ? String(view.runs) : `${view.runs} of ${view.limit}`],
    ['skipped', view.skips === 0 ? null : `${view.skips} because the run before had not ended`],
    ['missed', view.missedTicks === 0 ? null : `${view.missedTicks} because no keeper ran`],
    ['if missed', view.missed],
    ['overlap', view.overlap],
    ['options', Object.keys(view.options).length === 0 ? null : JSON.stringify(view.options)],
    ['last', view.lastTickMs === null ? null : formatTime(view.lastTickMs)],
    ['last job', view.lastJobId],
    ['made', view.declared === null ? 'at run time' : 'by code'],
    ['payload', withPayload ? JSON.stringify(view.payload) : null],
  ]
  for (const [name, value] of facts) {
    if (value !== null) terminal.print(`${terminal.paint('dim', name.padEnd(9))} ${printable(value)}`)
  }
}
