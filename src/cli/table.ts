import { stripVTControlCharacters } from 'node:util'
import type { Terminal } from './terminal.ts'

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
