import { stripVTControlCharacters, styleText } from 'node:util'
import { cellWidth, cutToCells } from './cells.ts'

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'blue' | 'cyan' | 'magenta'

/** Where a command prints: results to stdout, errors to stderr. */
export interface Terminal {
  readonly out: NodeJS.WritableStream & { readonly columns?: number; readonly rows?: number }
  /** The width for tables; null if the output is not a terminal and nothing may be cut. */
  readonly columns: number | null
  print(line: string): void
  complain(line: string): void
  /** Colours on a terminal only, and not with NO_COLOR. */
  paint(style: Style, text: string): string
  /**
   * For long-running commands: they continue when the reader of their log goes away, and their exit code tells so. Other
   * commands end then, because the reader has what it wanted.
   */
  outliveReader(): void
  /** Whether a long-running command has lost the reader of its log. */
  readonly lostReader: boolean
  /** Resolves when all output has been written. */
  flush(): Promise<void>
}

const COLUMNS_DEFAULT = 80

export type Surroundings = Pick<NodeJS.Process, 'stdout' | 'stderr' | 'env'>

export function systemTerminal({ stdout, stderr, env }: Surroundings = process): Terminal {
  const coloured = stdout.isTTY === true && (env.NO_COLOR ?? '') === '' && env.TERM !== 'dumb'
  let [outlivesReader, lostReader] = [false, false]
  stdout.on('error', (error) => {
    if (Reflect.get(error, 'code') !== 'EPIPE') throw error
    // `millrace jobs | head` closes the pipe early, which is not an error.
    if (!outlivesReader) process.exit(0)
    if (!lostReader) stderr.write('the reader of the log is gone; the command continues without it\n')
    lostReader = true
  })
  // With `2>&1 | head` stderr has no reader either.
  stderr.on('error', (error) => {
    if (Reflect.get(error, 'code') !== 'EPIPE') throw error
  })
  return {
    out: stdout,
    columns: stdout.isTTY === true ? stdout.columns || COLUMNS_DEFAULT : null,
    print: (line) => void stdout.write(`${withEscapes(line)}\n`),
    complain: (line) => void stderr.write(`${withEscapes(line)}\n`),
    paint: (style, text) => (coloured ? styleText(style, text, { validateStream: false }) : text),
    outliveReader: () => {
      outlivesReader = true
    },
    get lostReader() {
      return lostReader
    },
    flush: async () => {
      await Promise.all([flushed(stdout), flushed(stderr)])
    },
  }
}

function flushed(stream: NodeJS.WritableStream): Promise<void> {
  return new Promise((resolve) => void stream.write('', () => resolve()))
}

/**
 * Foreign text (a type, an error, a payload) as one line: neither an escape sequence nor a mark that turns the reading
 * direction may move the cursor or forge a line.
 */
export function printable(text: string): string {
  return text.replace(/\s+/g, ' ').replace(/[\p{Cc}\p{Bidi_Control}]/gu, '�')
}

/** What JSON.stringify leaves raw although a terminal obeys it. As an escape it parses to the same. */
function withEscapes(line: string): string {
  return line.replace(
    /[\u007f-\u009f\p{Bidi_Control}]/gu,
    (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

export interface Column {
  readonly title: string
  readonly align?: 'left' | 'right'
  /** Never cut, because users copy it: an id, or a time. */
  readonly whole?: boolean
}

type Row = readonly string[]

const GAP = '  '
const INDENT = '  '
/** A narrow terminal leaves this much of a text before its row is printed on several lines. */
const CUT_MIN = 12

function widthOf(cell: string): number {
  return cellWidth(stripVTControlCharacters(cell))
}

/** Aligned columns under a heading. On a terminal that is too narrow, texts are cut, or each row takes several lines. */
export function printTable(terminal: Terminal, columns: readonly Column[], rows: readonly Row[]): void {
  const widths = fittedWidths(terminal.columns, columns, rows)
  const lines =
    widths === null
      ? rows.flatMap((row) => stackedLines(terminal, columns, row))
      : tableLines(terminal, columns, rows, widths)
  for (const line of lines) terminal.print(line)
}

/** One line per row, whatever the width: what does not fit is cut. */
export function tableLines(
  terminal: Pick<Terminal, 'columns' | 'paint'>,
  columns: readonly Column[],
  rows: readonly Row[],
  widths: readonly number[] = fittedWidths(terminal.columns, columns, rows) ?? leastWidths(columns, rows),
): readonly string[] {
  const heading = columns.map((column) => terminal.paint('bold', column.title))
  return [heading, ...rows].map((row) => clip(lineOf(columns, widths, row), terminal.columns))
}

/** Whether no number, id or time has to be cut. */
export function fits(width: number | null, columns: readonly Column[], rows: readonly Row[]): boolean {
  return fittedWidths(width, columns, rows) !== null
}

function naturalWidths(columns: readonly Column[], rows: readonly Row[]): readonly number[] {
  return columns.map(({ title }, index) => Math.max(title.length, ...rows.map((row) => widthOf(row[index] ?? ''))))
}

function leastWidths(columns: readonly Column[], rows: readonly Row[]): readonly number[] {
  return naturalWidths(columns, rows).map((width, index) => {
    const { align, whole = false } = columns[index] ?? {}
    return whole || align === 'right' ? width : Math.min(width, CUT_MIN)
  })
}

/** From left to right, each column as wide as its cells while the others keep their least width. Null: too narrow. */
function fittedWidths(
  width: number | null,
  columns: readonly Column[],
  rows: readonly Row[],
): readonly number[] | null {
  const natural = naturalWidths(columns, rows)
  if (width === null) return natural
  const least = leastWidths(columns, rows)
  let spare = width - GAP.length * (columns.length - 1) - least.reduce((sum, one) => sum + one, 0)
  if (spare < 0) return null
  return natural.map((wanted, index) => {
    const given = Math.min(wanted, (least[index] ?? 0) + spare)
    spare -= given - (least[index] ?? 0)
    return given
  })
}

function lineOf(columns: readonly Column[], widths: readonly number[], row: Row): string {
  const cells = columns.map((column, index) => {
    const cell = clip(row[index] ?? '', widths[index] ?? null)
    const padding = ' '.repeat(Math.max(0, (widths[index] ?? 0) - widthOf(cell)))
    return column.align === 'right' ? padding + cell : cell + padding
  })
  return cells.join(GAP).trimEnd()
}

/** The first cell, then the others with their titles, on as many lines as they need. */
function stackedLines({ columns: width, paint }: Terminal, columns: readonly Column[], row: Row): readonly string[] {
  const lines: string[] = []
  for (const [index, { title }] of columns.entries()) {
    const cell = row[index] ?? ''
    if (cell === '') continue
    const piece = index === 0 ? cell : `${paint('dim', title)} ${cell}`
    const last = lines.at(-1)
    if (last !== undefined && lines.length > 1 && widthOf(last + GAP + piece) <= (width ?? 0)) {
      lines[lines.length - 1] = last + GAP + piece
    } else {
      lines.push(index === 0 ? piece : INDENT + piece)
    }
  }
  return lines.map((line) => clip(line, width))
}

/** A coloured cell that is too long loses its colour, so that the closing sequence is not cut off. */
export function clip(cell: string, room: number | null): string {
  if (room === null || widthOf(cell) <= room) return cell
  const plain = stripVTControlCharacters(cell)
  return room < 2 ? '' : `${cutToCells(plain, room - 1)}…`
}
