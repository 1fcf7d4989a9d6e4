import { stripVTControlCharacters, styleText } from 'node:util'

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
    print: (line) => void stdout.write(`${line}\n`),
    complain: (line) => void stderr.write(`${line}\n`),
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

/** Foreign text (a type, an error, a payload) as one line: an escape sequence must not move the cursor or forge a line. */
export function printable(text: string): string {
  return text.replace(/\s+/g, ' ').replace(/\p{Cc}/gu, '�')
}

export interface Column {
  readonly title: string
  readonly align?: 'left' | 'right'
}

const GAP = '  '

function widthOf(cell: string): number {
  return stripVTControlCharacters(cell).length
}

/** Aligned columns under a heading. On a terminal the last column is cut to the width. */
export function printTable(terminal: Terminal, columns: readonly Column[], rows: readonly (readonly string[])[]): void {
  for (const line of tableLines(terminal, columns, rows)) terminal.print(line)
}

export function tableLines(
  terminal: Pick<Terminal, 'columns' | 'paint'>,
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
): readonly string[] {
  const widths = columns.map((column, index) =>
    Math.max(column.title.length, ...rows.map((row) => widthOf(row[index] ?? ''))),
  )
  const heading = columns.map((column) => terminal.paint('bold', column.title))
  return [heading, ...rows].map((row) => lineOf(terminal.columns, columns, widths, row))
}

function lineOf(
  width: number | null,
  columns: readonly Column[],
  widths: readonly number[],
  row: readonly string[],
): string {
  const last = columns.length - 1
  const cells = columns.map((column, index) => {
    const cell = row[index] ?? ''
    const padding = ' '.repeat(Math.max(0, (widths[index] ?? 0) - widthOf(cell)))
    if (column.align === 'right') return padding + cell
    return index === last ? cell : cell + padding
  })
  const lead = cells.slice(0, last).join(GAP)
  const tail = cells[last] ?? ''
  const room = width === null ? null : Math.max(0, width - widthOf(lead) - GAP.length)
  return `${lead}${GAP}${clip(tail, room)}`.trimEnd()
}

/** A coloured cell that is too long loses its colour, so that the closing sequence is not cut off. */
export function clip(cell: string, room: number | null): string {
  if (room === null || widthOf(cell) <= room) return cell
  const plain = stripVTControlCharacters(cell)
  return room < 2 ? '' : `${plain.slice(0, room - 1)}…`
}
