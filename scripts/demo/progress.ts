/** One line per step, and tables: what the demonstration prints. */
import { systemTerminal, tableLines } from '../../src/cli/terminal.ts'
import { systemClock } from '../../src/time/clock.ts'

export const terminal = systemTerminal()

const startedMs = systemClock.monotonicMs()

/** A step that is done, with the time since the start. */
export function step(name: string, text: string): void {
  terminal.print(stepLine(name, text))
}

function stepLine(name: string, text: string): string {
  const seconds = ((systemClock.monotonicMs() - startedMs) / 1_000).toFixed(1).padStart(5)
  return `${terminal.paint('dim', `${seconds}s`)}  ${terminal.paint('cyan', name.padEnd(9))}  ${text}`
}

export function heading(text: string): void {
  terminal.print(`\n${terminal.paint('bold', text)}`)
}

/** Prints it and returns it, so that all can be counted. */
export function check(isTrue: boolean, text: string): boolean {
  terminal.print(`${isTrue ? terminal.paint('green', 'yes') : terminal.paint('red', 'NO ')}  ${text}`)
  return isTrue
}

export function table(titles: readonly string[], rows: readonly (readonly string[])[]): void {
  const columns = titles.map((title) => ({ title }))
  for (const line of tableLines({ columns: null, paint: terminal.paint }, columns, rows)) terminal.print(line)
}

/** Long ids by their ends: enough to compare by eye. */
export function short(id: string | null): string {
  if (id === null) return '-'
  return id.length <= 17 ? id : `${id.slice(0, 10)}…${id.slice(-6)}`
}

export function cut(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`
}

const BAR_WIDTH = 30
const BAR_WIDTH_MIN = 4
/** The time and the name before the bar. */
const STEP_WIDTH = 19

export interface Bar {
  /** How many of the total are done. */
  at(done: number): void
}

/** As wide as the terminal allows: a line that wraps cannot be drawn again. `columns` is null where there is none. */
export function barText(done: number, total: number, unit: string, columns: number | null): string {
  const label = `  ${done} of ${total} ${unit}`
  // The longest label decides, so that the bar keeps its width.
  const room = (columns ?? Number.POSITIVE_INFINITY) - 1 - STEP_WIDTH - `  ${total} of ${total} ${unit}`.length
  const width = Math.max(Math.min(BAR_WIDTH, room), BAR_WIDTH_MIN)
  const filled = Math.round((width * done) / total)
  return `${'█'.repeat(filled)}${'░'.repeat(width - filled)}${label}`
}

/** A bar that fills: one line that is drawn again on a terminal, a line for each quarter elsewhere. */
export function progressBar(name: string, total: number, unit: string): Bar {
  const isTerminal = terminal.columns !== null
  let shown = -1
  return {
    at(done) {
      const part = isTerminal ? done : Math.floor((4 * done) / total)
      if (part === shown) return
      shown = part
      const line = stepLine(name, barText(done, total, unit, terminal.columns))
      if (!isTerminal) return terminal.print(line)
      terminal.out.write(`\r${line}${done === total ? '\n' : ''}`)
    },
  }
}
