/** How the schedule commands print schedules. */
import type { Mill } from '../../client/mill.ts'
import { overdueSchedules, type ScheduleView } from '../../keeper/schedule-state.ts'
import { type Cli, type SharedOptions, withExistingMill } from '../cli.ts'
import { formatDuration, formatTime } from '../format.ts'
import { printable, printTable } from '../terminal.ts'

/** A tick that is this late is marked: any keeper would have run it by now. */
const OVERDUE_MS = 60_000

export function withSchedules<Answer>(
  cli: Cli,
  flags: SharedOptions,
  use: (schedules: Mill['schedules'], mill: Mill) => Promise<Answer>,
): Promise<Answer> {
  return withExistingMill(cli, flags, (mill) => use(mill.schedules, mill))
}

/** Payloads may hold secrets, and `declared` repeats the payload. */
export function withoutPayload(view: ScheduleView, nowMs: number): object {
  const { payload: _, declared, ...facts } = view
  return { ...facts, declared: declared !== null, overdue: isOverdue(view, nowMs) }
}

function isOverdue(view: ScheduleView, nowMs: number): boolean {
  return overdueSchedules([view], nowMs, OVERDUE_MS).length > 0
}

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
    ['skipped', view.skips === 0 ? null : `${view.skips} because the previous run had not ended`],
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
