/** Turns a snapshot into lines. It draws nothing itself, so a test can read them. */
import type { JobView } from '../../job/job.ts'
import { toIso } from '../../time/iso.ts'
import { COUNT_COLUMNS, countCells, detailOf, formatDuration } from '../format.ts'
import { heldText, lagOf } from '../held.ts'
import { drawBar, shareOf } from '../screen.ts'
import { type Column, clip, fits, printable, type Terminal, tableLines } from '../terminal.ts'
import type { Rates, TopSnapshot, TypeLine } from './snapshot.ts'

/** `columns` and `rows` are null for a pipe, where nothing is cut. */
export interface Canvas extends Pick<Terminal, 'columns' | 'paint'> {
  readonly rows: number | null
}

const BAR_WIDTH = 20
const TYPES_SHARE = 0.4
const DEAD_SHOWN = 5

export function renderTop(snapshot: TopSnapshot, canvas: Canvas): readonly string[] {
  const { paint, rows } = canvas
  const head = [titleOf(snapshot, canvas), summaryOf(snapshot), '']
  const types = typeLines(snapshot, canvas, rows === null ? null : Math.max(1, Math.floor(rows * TYPES_SHARE)))
  const dead = deadLines(snapshot, canvas)
  const members = memberLines(snapshot, canvas)
  const end = rows === null ? [] : [paint('dim', 'q or Ctrl-C ends this view; jobs continue.')]
  const room =
    rows === null
      ? null
      : Math.max(1, rows - head.length - types.length - members.length - dead.length - end.length - 3)
  const running = [paint('bold', 'Running'), ...cut(runningLines(snapshot, canvas), room, canvas)]
  const body = [...head, ...types, '', ...running, '', ...members, ...dead]
  // The hint stays visible on the smallest screen.
  const fitting = rows === null ? body : body.slice(0, rows - end.length)
  return [...fitting, ...end].map((line) => clip(line, canvas.columns))
}

function titleOf({ url, nowMs }: TopSnapshot, { paint }: Canvas): string {
  const [, time = ''] = toIso(nowMs).split(/[T.]/)
  return `${paint('bold', 'millrace top')}  ${paint('dim', `${printable(url)}  ${time} UTC`)}`
}

function summaryOf({ total, oldest, nowMs }: TopSnapshot): string {
  const waiting =
    oldest === null
      ? 'nothing waits'
      : `oldest waiting: ${formatDuration(nowMs - oldest.runAtMs)}, ${printable(oldest.type)} ${printable(oldest.id)}`
  const { rates } = total
  if (rates === null) return waiting
  return `in ${perSecond(rates.enqueued)}  done ${perSecond(rates.completed)}  dead ${perSecond(rates.dead)}  ${waiting}`
}

function perSecond(rate: number): string {
  return `${rate < 10 ? rate.toFixed(1) : Math.round(rate)}/s`
}

function typeLines({ types, total }: TopSnapshot, canvas: Canvas, room: number | null): readonly string[] {
  const lags = types.flatMap(({ lag }) => lag ?? [])
  const hasLag = lags.length > 0
  const columns: readonly Column[] = [
    { title: 'TYPE' },
    ...COUNT_COLUMNS,
    ...(hasLag ? [{ title: 'LAG', align: 'right' } as const] : []),
    { title: 'IN/S', align: 'right' },
    { title: 'DONE/S', align: 'right' },
  ]
  const row = ({ type, counts, rates, lag }: TypeLine): readonly string[] => [
    type === '*' ? canvas.paint('bold', 'total') : printable(type),
    ...countCells(counts, canvas.paint),
    ...(hasLag ? [lag === undefined ? '-' : String(lag)] : []),
    rateCell(rates, 'enqueued'),
    rateCell(rates, 'completed'),
  ]
  // Show the busiest types if not all fit, in the same order, so that rows do not jump.
  const kept = room === null ? types : busiest(types, Math.max(1, room - 2))
  const rows = [...kept, hasLag ? { ...total, lag: lags.reduce((sum, lag) => sum + lag, 0) } : total].map(row)
  // Half a number would mislead. The rates of all types are in the summary too.
  const shown = [columns, columns.slice(0, -1), columns.slice(0, -2)].find((some) => fits(canvas.columns, some, rows))
  return tableLines(canvas, shown ?? columns.slice(0, -2), rows)
}

function rateCell(rates: Rates | null, name: keyof Rates): string {
  return rates === null ? '-' : perSecond(rates[name]).replace('/s', '')
}

function busiest(types: readonly TypeLine[], max: number): readonly TypeLine[] {
  const work = ({ counts }: TypeLine): number => counts.inProgress * 1e9 + counts.ready * 1e3 + counts.dead
  const kept = new Set([...types].sort((a, b) => work(b) - work(a)).slice(0, max))
  return types.filter((line) => kept.has(line))
}

function runningLines({ running, nowMs }: TopSnapshot, canvas: Canvas): readonly string[] {
  if (running.length === 0) return [canvas.paint('dim', '  nothing')]
  const columns: readonly Column[] = [
    { title: '  ID', whole: true },
    { title: 'TYPE' },
    { title: 'TRY', align: 'right' },
    { title: 'FOR', align: 'right' },
    { title: 'PROGRESS' },
  ]
  const rows = running.map((view) => [
    `  ${printable(view.id)}`,
    printable(view.type),
    `${view.attempt}/${view.attempts}`,
    view.startedAtMs === null ? '-' : formatDuration(nowMs - view.startedAtMs),
    progressOf(view, nowMs, canvas),
  ])
  return tableLines(canvas, columns, rows).slice(1)
}

function progressOf(view: JobView, nowMs: number, { paint }: Canvas): string {
  const share = shareOf(view.progress)
  if (share === null) return detailOf(view, nowMs)
  return `${drawBar(share, BAR_WIDTH, paint)} ${String(Math.round(share * 100)).padStart(3)} %`
}

function deadLines({ dead, total, nowMs }: TopSnapshot, canvas: Canvas): readonly string[] {
  if (dead.length === 0) return []
  const shown = canvas.rows === null ? DEAD_SHOWN : Math.min(DEAD_SHOWN, Math.max(1, Math.floor(canvas.rows / 6)))
  const lines = dead
    .slice(0, shown)
    .map(
      (view) =>
        `  ${canvas.paint('red', printable(view.type))} ${printable(view.id)} ${formatDuration(nowMs - (view.completedAtMs ?? nowMs))} ago: ${detailOf(view, nowMs)}`,
    )
  return [canvas.paint('bold', `Dead letters: ${total.counts.dead}`), ...lines, '']
}

/** Who has which parts of the types, and how far each is behind there. */
function memberLines({ members }: TopSnapshot, canvas: Canvas): readonly string[] {
  if (members === null) return []
  const heading = canvas.paint('bold', `Workers: ${members.length}`)
  const room = canvas.rows === null ? null : Math.max(2, Math.floor(canvas.rows / 5))
  const lines = members.map(({ id, host, types, holds = [] }) => {
    const held = types.map((type) => ({ type, holds: holds.filter((one) => one.type === type) }))
    return `  ${printable(id)} on ${printable(host ?? '?')}: ${printable(heldText(held))}, ${lagOf(held)} behind`
  })
  return [heading, ...cut(lines, room, canvas), '']
}

function cut(lines: readonly string[], room: number | null, { paint }: Canvas): readonly string[] {
  if (room === null || lines.length <= room) return lines
  return [...lines.slice(0, room - 1), paint('dim', `  and ${lines.length - room + 1} more`)]
}
