import { stripVTControlCharacters, styleText } from 'node:util'

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'blue' | 'cyan' | 'magenta'

/** Where a command prints. Answers go to `out`, errors to `err`, so that a pipe carries answers only. */
export interface Terminal {
  /** A terminal also says how large it is now. */
  readonly out: NodeJS.WritableStream & { readonly columns?: number; readonly rows?: number }
  /** The width to fit a table into, or null when a program reads the output and nothing may be cut. */
  readonly columns: number | null
  print(line: string): void
  complain(line: string): void
  /** Coloured on a terminal, plain elsewhere and under NO_COLOR. */
  paint(style: Style, text: string): string
  /**
   * For a command that works: it goes on when nobody reads its log any more, and says so by its exit code. The reader of a
   * command that answers has what it wanted, so such a command ends then.
   */
  outliveReader(): void
  /** Whether a command that works has lost the reader of its log. */
  readonly lostReader: boolean
  /** Resolves when everything printed has been handed to the system. */
  flush(): Promise<void>
}

const COLUMNS_DEFAULT = 80

export type Surroundings = Pick<NodeJS.Process, 'stdout' | 'stderr' | 'env'>

export function systemTerminal({ stdout, stderr, env }: Surroundings = process): Terminal {
  const coloured = stdout.isTTY === true && (env.NO_COLOR ?? '') === '' && env.TERM !== 'dumb'
  let [outlivesReader, lostReader] = [false, false]
  stdout.on('error', (error) => {
    if (Reflect.get(error, 'code') !== 'EPIPE') throw error
    // `millrace jobs | head` closes the pipe early: the reader has what it wanted, so this is no error.
    if (!outlivesReader) process.exit(0)
    if (!lostReader) stderr.write('nobody reads the log any more; the command goes on without it\n')
    lostReader = true
  })
  // With `2>&1 | head` the reader of errors is gone too, and there is nobody left to tell.
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

/**
 * Text that someone else wrote (a type, an error, a payload) as one harmless line: an escape sequence in it must not
 * move the reader's cursor or forge a line.
 */
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

/** Rows as aligned columns under a heading. On a terminal the last column is cut to the width; a pipe gets it whole. */
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

/** A coloured cell that is too long loses its colour rather than its closing sequence. */
export function clip(cell: string, room: number | null): string {
  if (room === null || widthOf(cell) <= room) return cell
  const plain = stripVTControlCharacters(cell)
  return room < 2 ? '' : `${plain.slice(0, room - 1)}…`
}
