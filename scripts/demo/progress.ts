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

export interface Bar {
  /** How many of the total are done. */
  at(done: number): void
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
      const filled = Math.round((BAR_WIDTH * done) / total)
      const text = `${'█'.repeat(filled)}${'░'.repeat(BAR_WIDTH - filled)}  ${done} of ${total} ${unit}`
      const line = stepLine(name, text)
      if (!isTerminal) return terminal.print(line)
      terminal.out.write(`\r${line}${done === total ? '\n' : ''}`)
    },
  }
}
