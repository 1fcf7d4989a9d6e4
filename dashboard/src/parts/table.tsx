import type { ComponentChildren } from 'preact'

export interface Column<Row> {
  readonly key: string
  /** The heading, and the label of each value when the table becomes cards on a narrow screen. */
  readonly title: string
  /** Instead of the title, such as a checkbox for all rows. */
  readonly head?: ComponentChildren
  readonly cell: (row: Row) => ComponentChildren
  readonly align?: 'end'
  /** Takes the remaining width. */
  readonly wide?: boolean
}

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

const classOf = ({ align, wide }: Column<never>): string => [align ?? '', wide === true ? 'wide' : ''].join(' ').trim()

export function Table<Row>({ caption, columns, rows, keyOf, rowClass, small = false }: TableProps<Row>) {
  return (
    <div class={small ? 'table-small' : 'table-frame'}>
      <table class="table">
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
