/** A frame of the live view: a snapshot in, lines out. Pure, so that a test can check it. */
import { styleText } from 'node:util'
import type { JobView } from 'millrace'
import { drawBar, shareOf } from '../../src/cli/screen.ts'
import { clip, printable } from '../../src/cli/terminal.ts'
import type { Snapshot } from './snapshot.ts'

type Style = Parameters<typeof styleText>[0]

export interface Canvas {
  readonly columns: number
  readonly rows: number
  readonly coloured: boolean
}

interface Mark {
  readonly symbol: string
  readonly style: Style
  readonly word: string
}

const SPARKS = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'] as const
const TYPE_WIDTH = 14
const BAR_WIDTH = 20

export function renderFrame(snapshot: Snapshot, canvas: Canvas): readonly string[] {
  const paint = (style: Style, text: string): string =>
    canvas.coloured ? styleText(style, text, { validateStream: false }) : text
  const section = (title: string): string => ` ${paint('bold', title)}`
  const jobLine = (view: JobView): string => drawJob(view, snapshot.nowMs, canvas.columns, paint)

  const head = [
    drawTitle(snapshot, canvas.columns, paint),
    '',
    drawTotals(snapshot, paint),
    drawRate(snapshot, paint),
    '',
  ]
  const dead = [section('Dead letters'), ...lines(snapshot.dead.map(jobLine), 2), '']
  const tail = [section('Try in another terminal'), ...drawTries(snapshot, paint), '', drawEnd(paint)]
  // Jobs fill the rest of the screen, so that the last line stays visible. Running jobs come first.
  const room = Math.max(1, canvas.rows - head.length - dead.length - tail.length - 2)
  const jobs = [section('Jobs'), ...lines([...snapshot.running, ...snapshot.recent].map(jobLine), room), '']
  const frame = [...head, ...jobs, ...dead, ...tail]
  const fitting = frame.length <= canvas.rows ? frame : frame.filter((line) => line !== '')
  return fitting.slice(0, canvas.rows).map((line) => clip(line, canvas.columns))
}

type Paint = (style: Style, text: string) => string

/** Always this many lines, so that nothing jumps when a job ends. */
function lines(drawn: readonly string[], count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => drawn[index] ?? '')
}

function drawTitle(snapshot: Snapshot, columns: number, paint: Paint): string {
  const left = ' Millrace tour'
  const seconds = Math.floor(snapshot.upMs / 1_000)
  const up = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
  const right = `${snapshot.page}   ${up} `
  const gap = ' '.repeat(Math.max(2, columns - left.length - right.length))
  return `${paint(['bold', 'cyan'], left)}${gap}${paint('dim', right)}`
}

function drawTotals({ totals }: Snapshot, paint: Paint): string {
  const shown: readonly (readonly [string, number, Style])[] = [
    ['ready', totals.ready, 'blue'],
    ['delayed', totals.delayed, 'blue'],
    ['running', totals.inProgress, 'cyan'],
    ['completed', totals.completed, 'green'],
    ['dead', totals.dead, 'red'],
  ]
  return shown
    .map(
      ([name, count, style]) =>
        `  ${paint(count === 0 ? 'dim' : ([style, 'bold'] as Style), String(count).padStart(3))} ${name}`,
    )
    .join('')
}

function drawRate({ settledPerSecond }: Snapshot, paint: Paint): string {
  const peak = Math.max(1, ...settledPerSecond)
  const sparks = settledPerSecond.map((count) =>
    count === 0 ? ' ' : (SPARKS[Math.min(SPARKS.length - 1, Math.floor((count / peak) * SPARKS.length))] ?? ''),
  )
  const mean = settledPerSecond.reduce((sum, count) => sum + count, 0) / settledPerSecond.length
  return `  ${mean.toFixed(1).padStart(5)} jobs/s  ${paint('green', sparks.join(''))}`
}

function markOf(view: JobView): Mark {
  switch (view.state) {
    case 'queued':
      return view.error === null
        ? { symbol: '·', style: 'blue', word: 'waiting' }
        : { symbol: '↻', style: 'yellow', word: 'retry' }
    case 'in_progress':
      return { symbol: '▶', style: 'cyan', word: 'running' }
    case 'completed':
      return { symbol: '✓', style: 'green', word: 'completed' }
    case 'failed':
    case 'dead_letter':
      return { symbol: '✗', style: 'red', word: 'dead' }
    case 'cancelled':
    case 'superseded':
    case 'discarded':
      return { symbol: '○', style: 'magenta', word: view.state }
    default:
      view.state satisfies never
      return { symbol: '?', style: 'dim', word: '' }
  }
}

function drawJob(view: JobView, nowMs: number, columns: number, paint: Paint): string {
  const { symbol, style, word } = markOf(view)
  const type = view.type.slice(0, TYPE_WIDTH).padEnd(TYPE_WIDTH)
  const lead = `  ${paint(style, symbol)} ${type} ${paint('dim', view.id.slice(-6))}  ${paint(style, word.padEnd(10))} `
  const used = 2 + 1 + 1 + TYPE_WIDTH + 1 + 6 + 2 + 10 + 1
  return lead + clip(drawDetail(view, nowMs, paint), columns - used)
}

function drawDetail(view: JobView, nowMs: number, paint: Paint): string {
  const message = printable(view.error?.message ?? '')
  if (view.state === 'in_progress') {
    const share = shareOf(view.progress)
    if (share === null) return subjectOf(view)
    const percent = `${String(Math.round(share * 100)).padStart(3)} %`
    return `${drawBar(share, BAR_WIDTH, paint)} ${percent} ${subjectOf(view)}`
  }
  if (view.state === 'completed') {
    return `${`${Math.round(view.durationMs ?? 0)} ms`.padStart(7)}  ${paint('dim', subjectOf(view))}`
  }
  if (view.state === 'queued' && view.runAtMs > nowMs) {
    const due = `in ${((view.runAtMs - nowMs) / 1_000).toFixed(1)} s`
    return message === ''
      ? `${due}  ${paint('dim', subjectOf(view))}`
      : `${due}, try ${view.attempt + 1} of ${view.attempts}: ${message}`
  }
  return [message, paint('dim', subjectOf(view))].filter((part) => part !== '').join('  ')
}

/** The tour may show its own payloads; logs never do. */
function subjectOf(view: JobView): string {
  try {
    const payload: unknown = JSON.parse(view.payload)
    if (typeof payload !== 'object' || payload === null) return ''
    return printable(
      Object.entries(payload)
        .map(([name, value]) => `${name} ${value}`)
        .join(', '),
    )
  } catch {
    return ''
  }
}

function drawTries(snapshot: Snapshot, paint: Paint): readonly string[] {
  const id = snapshot.dead[0]?.id
  const elsewhere = snapshot.url === 'sqlite:./millrace.db' ? [] : [`   export MILLRACE_ENGINE='${snapshot.url}'`]
  const tries = [
    'stats',
    id === undefined ? 'jobs --status dead_letter' : `job ${id}`,
    `enqueue checksum '{"path":"README.md"}'`,
    'work examples/tour/jobs.ts',
  ]
  return [...elsewhere, ...tries.map((command) => `   ${paint('dim', 'npm run -s millrace --')} ${command}`)]
}

function drawEnd(paint: Paint): string {
  return ` ${paint('dim', 'Ctrl-C finishes running jobs and stops; waiting jobs stay for the next start.')}`
}
