import type { ComponentChildren } from 'preact'

export interface Column<Row> {
  readonly key: string
  /** The heading, and the label of the value on a narrow screen, where a row has several lines. */
  readonly title: string
  /** Instead of the title, such as a checkbox for all rows. */
  readonly head?: ComponentChildren
  readonly cell: (row: Row) => ComponentChildren
  readonly align?: 'end'
  /** Takes the remaining width. */
  readonly wide?: boolean
  readonly narrow?: Narrow
}

/**
 * Its place in the row of a narrow screen. On the first line: `first` at its start, `lead` with the remaining width, `corner`
 * at its end. Below: `plain` without its title, `line` on a line of its own. Any other column stands below with its title.
 */
type Narrow = 'first' | 'lead' | 'corner' | 'plain' | 'line'

interface TableProps<Row> {
  /** For screen readers. */
  readonly caption: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly keyOf: (row: Row) => string
  readonly rowClass?: (row: Row) => string
  /** In a card or a dialog: it wraps, where another one scrolls. */
  readonly small?: boolean
}

const classOf = ({ align, wide, narrow }: Column<never>): string =>
  [align, wide === true && 'wide', narrow !== undefined && `at-${narrow}`]
    .filter((name) => typeof name === 'string')
    .join(' ')

/** So many figures stand on one line of a narrow screen, below their headings. */
const isFigured = (count: number): boolean => count >= 4 && count <= 6

export function Table<Row>({ caption, columns, rows, keyOf, rowClass, small = false }: TableProps<Row>) {
  const figures = columns.filter(({ align, narrow }) => align === 'end' && narrow === undefined).length
  return (
    <div class={small ? 'table-small' : 'table-frame'}>
      <table class={`table ${isFigured(figures) ? 'figured' : ''}`}>
        <caption class="unseen">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.key} scope="col" class={classOf(column)}>
                {column.head ?? column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)} class={rowClass?.(row) ?? ''}>
              {columns.map((column) => (
                <td key={column.key} class={classOf(column)} data-title={column.title}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
